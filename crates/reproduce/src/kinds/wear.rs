//! Wear of a cache's PCM.

use super::caching::{StudyWorkload, cache_bytes, study_workloads};
use super::claim_verdict::{ClaimVerdict, claim_table};
use super::{Measure, Present, Subject};
use crate::caching::{self, CacheRun};
use crate::describe::{Claim, HostLoop, Study};
use crate::outcome::{Cell, Outcome, OutcomePart, OutcomeTable, generated};
use crate::workbench::Workbench;
use crate::{Error, Result, builtin};
use frit_trace::identity::WorkloadKind;
use frit_wear::LevelerKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Suffix of a leveler's name for cubes that are not turned.
const BY_THE_LETTER: &str = ", not turned";

/// Measurement of the wear of a cache's PCM, by wear leveler.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WearPlan {
    /// Name of the study.
    pub study: String,
    /// Policy of the cache.
    pub policy: String,
    /// Workloads.
    pub workloads: Vec<String>,
    /// Levelers; `sfc, not turned` has the cubes of equation 1 by the letter.
    pub levelers: Vec<String>,
    /// Levelers of which the whole PCM is measured as well, with records and registers.
    #[serde(default)]
    pub with_records: Vec<String>,
    /// Published life rates, means over the paper's traces, by leveler.
    pub published: BTreeMap<String, f64>,
    /// Lifetime factor: the life rate of the first leveler divided by that of the second, and its
    /// published value.
    pub factor: (String, String, f64),
}

/// Life rates by workload and leveler.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearOutcome {
    /// The levelers, by column.
    pub levelers: Vec<String>,
    /// Rows, one for each workload.
    pub rows: Vec<WearRow>,
    /// Mean life rates of the generated workloads that stand for the paper's.
    pub means: Vec<f64>,
    /// Published means; `None` for levelers that the paper does not have.
    pub published: Vec<Option<f64>>,
    /// Lifetime factor: mean over the same workloads of one leveler's life rate divided by another's.
    pub factor: f64,
    /// The two levelers of the factor.
    pub factor_of: (String, String),
    /// Published lifetime factor.
    pub factor_published: f64,
    /// Levelers of which the whole PCM was measured.
    pub with_records: Vec<String>,
    /// Means of the life rates of the whole PCM, over the workloads of `means`.
    pub means_with_records: Vec<f64>,
    /// Verdicts on the claims.
    pub claims: Vec<ClaimVerdict>,
}

/// Life rates of a workload.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearRow {
    /// Name of the workload.
    pub workload: String,
    /// Recorded or generated.
    pub kind: WorkloadKind,
    /// The workload of the paper that it stands for.
    pub stands_for: Option<String>,
    /// Size of the cache, in bytes.
    pub cache_bytes: u64,
    /// Number of blocks written to PCM.
    pub writes: u64,
    /// Life rates by leveler: mean writes of a bank divided by those of the most written one.
    pub rates: Vec<f64>,
    /// Lifetime factor of this workload: see [`WearOutcome::factor_of`].
    pub factor: f64,
    /// Life rates of the whole PCM: see [`WearOutcome::with_records`].
    pub with_records: Vec<f64>,
}

impl WearRow {
    /// Returns `true` if the row enters the mean beside the published one.
    fn is_the_paper_s(&self) -> bool {
        self.kind == WorkloadKind::Generated && self.stands_for.is_some()
    }
}

impl Measure for WearPlan {
    type Data = WearOutcome;

    fn measure(
        &self,
        subject: Subject<'_>,
        bench: &mut Workbench,
        note: &mut dyn FnMut(&str),
    ) -> Result<WearOutcome> {
        let study = builtin::study(&self.study)?;
        let columns = self.columns(subject.id, &study)?;
        let quick = bench.options.quick;
        let mut rows = Vec::new();
        for h in study_workloads(&study, Some(&self.workloads), bench)? {
            note(&h.spec.name);
            rows.push(columns.row(&h, cache_bytes(&study, &h, 1.0, quick))?);
        }
        let mean = |of: &dyn Fn(&WearRow) -> f64| {
            let of: Vec<f64> = rows.iter().filter(|r| r.is_the_paper_s()).map(of).collect();
            of.iter().sum::<f64>() / of.len().max(1) as f64
        };
        let mut outcome = WearOutcome {
            means: (0..self.levelers.len()).map(|i| mean(&|r| r.rates[i])).collect(),
            published: self.levelers.iter().map(|l| self.published.get(l).copied()).collect(),
            levelers: self.levelers.clone(),
            factor: mean(&|r| r.factor),
            factor_of: (self.factor.0.clone(), self.factor.1.clone()),
            factor_published: self.factor.2,
            with_records: self.with_records.clone(),
            means_with_records: (0..self.with_records.len()).map(|i| mean(&|r| r.with_records[i])).collect(),
            claims: Vec::new(),
            rows,
        };
        for claim in subject.claims {
            outcome.claims.extend(outcome.judge(claim, subject.id)?);
        }
        Ok(outcome)
    }
}

/// The levelers of an experiment, and the run of a workload.
struct Columns {
    run: CacheRun,
    levelers: Vec<(LevelerKind, bool)>,
    with_records: Vec<LevelerKind>,
    /// Columns of the two levelers of the factor.
    factor: (usize, usize),
}

impl WearPlan {
    fn columns(&self, id: &str, study: &Study) -> Result<Columns> {
        let bad = |why: String| Error::Description { name: id.into(), why };
        let policy =
            study.policy(&self.policy).ok_or_else(|| bad(format!("there is no policy '{}'", self.policy)))?;
        let kind =
            |n: &str| n.parse::<LevelerKind>().map_err(|_| bad(format!("there is no wear leveling '{n}'")));
        let leveler = |n: &String| match n.strip_suffix(BY_THE_LETTER) {
            Some(n) => Ok((kind(n)?, false)),
            None => Ok((kind(n)?, true)),
        };
        let column = |n: &String| {
            let at = self.levelers.iter().position(|l| l == n);
            at.ok_or_else(|| bad(format!("'{n}' is none of the levelers")))
        };
        Ok(Columns {
            run: CacheRun {
                stack: study.stack.clone(),
                set: [&study.set, &policy.set].into_iter().flatten().cloned().collect(),
                cache_bytes: 0,
                host: HostLoop::Counted,
            },
            levelers: self.levelers.iter().map(leveler).collect::<Result<_>>()?,
            with_records: self.with_records.iter().map(|n| kind(n)).collect::<Result<_>>()?,
            factor: (column(&self.factor.0)?, column(&self.factor.1)?),
        })
    }
}

impl Columns {
    fn row(&self, h: &StudyWorkload<'_>, cache_bytes: u64) -> Result<WearRow> {
        // A bank has at least 16 stripes.
        let run = CacheRun { cache_bytes: cache_bytes.max(64 << 20), ..self.run.clone() };
        let found = caching::wear(&run, &h.input, &self.levelers)?;
        let rates: Vec<f64> = found.iter().map(|r| r.life_rate).collect();
        let whole = |&leveler: &LevelerKind| caching::stack_life_rate(&run, &h.input, leveler);
        Ok(WearRow {
            workload: h.spec.name.clone(),
            kind: h.input.kind,
            stands_for: h.spec.stands_for.clone(),
            cache_bytes: run.cache_bytes,
            writes: found.first().map_or(0, |r| r.writes),
            factor: rates[self.factor.0] / rates[self.factor.1],
            with_records: self.with_records.iter().map(whole).collect::<Result<_>>()?,
            rates,
        })
    }
}

impl WearOutcome {
    /// Returns the mean of a column: of a leveler, or the lifetime factor.
    fn mean(&self, column: &str, id: &str) -> Result<f64> {
        if column == self.factor_name() {
            return Ok(self.factor);
        }
        let at = self.levelers.iter().position(|l| l == column);
        let why = || format!("a rule names the column '{column}', and there is none");
        at.map(|i| self.means[i]).ok_or_else(|| Error::Description { name: id.into(), why: why() })
    }

    fn factor_name(&self) -> String {
        format!("{} / {}", self.factor_of.0, self.factor_of.1)
    }

    /// Returns the verdicts on a claim: its direction over the means, and its bands of means.
    fn judge(&self, claim: &Claim, id: &str) -> Result<Vec<ClaimVerdict>> {
        let any = self.rows.iter().any(WearRow::is_the_paper_s);
        let verdict = |rule: String, measured: &[f64], holds: Option<bool>| ClaimVerdict {
            claim: claim.id.clone(),
            rule,
            measured: measured.iter().map(|v| format!("{v:.4}")).collect::<Vec<_>>().join(", "),
            holds: holds.filter(|_| any),
        };
        let mut out = Vec::new();
        if let Some(d) = &claim.direction {
            let means: Vec<f64> = d.over.iter().map(|c| self.mean(c, id)).collect::<Result<_>>()?;
            out.push(verdict(d.words(), &means, d.holds(&means)));
        }
        for band in &claim.bands {
            let mean = self.mean(&band.column, id)?;
            out.push(verdict(band.words(), &[mean], Some(band.holds(mean))));
        }
        Ok(out)
    }
}

impl Present for WearOutcome {
    fn present(&self) -> Outcome {
        let mut parts = Vec::new();
        if !self.claims.is_empty() {
            parts.push(OutcomePart::Table(claim_table(&self.claims)));
        }
        let about = "Life rate of the slots: mean writes of a bank divided by the maximum. The mean is \
                     that of the GENERATED workloads that stand for the paper's.";
        parts.extend([OutcomePart::Text(about.to_owned()), OutcomePart::Table(self.table())]);
        if !self.with_records.is_empty() {
            let about = "Life rate of the whole PCM of a stack with the leveler: slots, records of the \
                         blocks, and registers of the leveler.";
            parts.extend([OutcomePart::Text(about.to_owned()), OutcomePart::Table(self.whole_table())]);
        }
        Outcome { blank_end: true, ..Outcome::of(parts) }
    }
}

impl WearOutcome {
    fn table(&self) -> OutcomeTable {
        let mut table =
            OutcomeTable::new(2, &["workload", "stands for", "cache", "blocks written"], Vec::new());
        table.head.extend(self.levelers.iter().map(|l| Cell::text(l)));
        table.head.push(Cell::Text(self.factor_name()));
        let rates = |rates: &[f64]| rates.iter().map(|r| Cell::number(*r, 4)).collect::<Vec<_>>();
        for r in &self.rows {
            let mut row = names(r);
            row.extend([Cell::Size(r.cache_bytes >> 20 << 20), Cell::Count(r.writes)]);
            row.extend(rates(&r.rates));
            row.push(Cell::number(r.factor, 2));
            table.rows.push(row);
        }
        let mut summary = |name: &str, rates: Vec<Cell>, factor: f64| {
            let mut row = vec![Cell::text(name), Cell::text(""), Cell::text(""), Cell::text("")];
            row.extend(rates);
            row.push(Cell::number(factor, 2));
            table.rows.push(row);
        };
        summary("mean", rates(&self.means), self.factor);
        let published = self.published.iter().map(|p| p.map_or(Cell::Missing, |p| Cell::number(p, 4)));
        summary("published", published.collect(), self.factor_published);
        table
    }

    fn whole_table(&self) -> OutcomeTable {
        let mut table = OutcomeTable::new(2, &["workload", "stands for"], Vec::new());
        table.head.extend(self.with_records.iter().map(|l| Cell::text(l)));
        for r in &self.rows {
            let rates = r.with_records.iter().map(|r| Cell::number(*r, 4));
            table.rows.push(names(r).into_iter().chain(rates).collect());
        }
        let means = self.means_with_records.iter().map(|r| Cell::number(*r, 4));
        table.rows.push([Cell::text("mean"), Cell::text("")].into_iter().chain(means).collect());
        table
    }
}

fn names(r: &WearRow) -> Vec<Cell> {
    vec![Cell::Text(generated(&r.workload, r.kind)), Cell::name(r.stands_for.as_deref())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(means: [f64; 3]) -> WearOutcome {
        let row = WearRow {
            workload: "w".into(),
            kind: WorkloadKind::Generated,
            stands_for: Some("A".into()),
            cache_bytes: 1 << 26,
            writes: 1,
            rates: means.to_vec(),
            factor: means[2] / means[0],
            with_records: Vec::new(),
        };
        WearOutcome {
            levelers: ["start-gap", "round-robin", "sfc"].map(String::from).into(),
            factor: row.factor,
            rows: vec![row],
            means: means.to_vec(),
            published: vec![None; 3],
            factor_of: ("sfc".into(), "start-gap".into()),
            factor_published: 21.6,
            with_records: Vec::new(),
            means_with_records: Vec::new(),
            claims: Vec::new(),
        }
    }

    #[test]
    fn order_and_means_are_judged_by_the_rules_of_the_claim() {
        let claim: Claim = toml::from_str(
            "id = \"x\"\npublished = \"p\"\n\
             direction = { goes = \"up\", over = [\"start-gap\", \"round-robin\", \"sfc\"], slack = 0.0, change = 0.0 }\n\
             [[band]]\ncolumn = \"sfc\"\nleast = 0.8\n[[band]]\ncolumn = \"sfc / start-gap\"\nmost = 3\n",
        )
        .unwrap();
        let judged = |o: &WearOutcome| -> Vec<_> {
            o.judge(&claim, "x").unwrap().into_iter().map(|v| v.holds).collect()
        };
        assert_eq!(judged(&outcome([0.3, 0.6, 0.9])), [Some(true), Some(true), Some(true)]);
        assert_eq!(judged(&outcome([0.1, 0.8, 0.7])), [Some(false), Some(false), Some(false)]);
        let mut none = outcome([0.3, 0.6, 0.9]);
        none.rows[0].stands_for = None;
        assert_eq!(judged(&none), [None, None, None], "no workload of the paper");
        let wrong = Claim { direction: None, ..claim };
        let e = WearOutcome { levelers: Vec::new(), ..outcome([0.3, 0.6, 0.9]) }.judge(&wrong, "x");
        assert!(e.unwrap_err().to_string().contains("the column 'sfc'"));
    }
}
