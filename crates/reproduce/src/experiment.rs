//! Experiments: the files in `experiments/`, and the register of their kinds.
//!
//! A file is one figure or table of a paper. It contains the paper's claims, under stable IDs, and
//! one table that describes the measurement, whose name is the kind of experiment.

use crate::describe::Claim;
use crate::findings::{RunDoubts, of_experiment};
use crate::kinds::{
    CachingOutcome, CachingPlan, ComparisonOutcome, ComparisonPlan, FigureOutcome, FigurePlan,
    LatencyOutcome, LatencyPlan, Measure, NotMeasurable, NotMeasured, PatternsOutcome, PatternsPlan, Present,
    QueryOutcome, QueryPlan, RecoveryOutcome, RecoveryPlan, SoftwareOutcome, SoftwarePlan, Subject,
    TheoryOutcome, TheoryPlan, WearOutcome, WearPlan,
};
use crate::outcome::Outcome;
use crate::workbench::Workbench;
use crate::{Error, Result};
use frit_replay::findings::Finding;
use serde::{Deserialize, Serialize};

/// An experiment: one figure or table.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// ID, such as `hfsl.f15`.
    pub id: String,
    /// Short description of the measured quantity.
    pub title: String,
    /// Publication.
    pub source: String,
    /// Assumptions where the paper leaves details open.
    pub readings: Vec<String>,
    /// Claims of the paper.
    pub claims: Vec<Claim>,
    /// Description of the measurement.
    pub plan: MeasurementPlan,
}

/// Defines the kinds of experiment. A kind has the name of its table in experiment files, a variant
/// whose name is the key of its results in JSON, and the types of its plan and of its results.
macro_rules! kinds {
    ($($(#[$doc:meta])* $table:ident: $variant:ident($plan:ident => $data:ident);)*) => {
        /// Description of a measurement, by kind of experiment.
        #[derive(Clone, Debug)]
        pub enum MeasurementPlan {
            $($(#[$doc])* $variant($plan),)*
        }

        /// Measured results, by kind of experiment.
        #[derive(Clone, PartialEq, Debug, Serialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Measured {
            $($(#[$doc])* $variant($data),)*
        }

        /// Contents of an experiment file.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct ExperimentFile {
            id: String,
            title: String,
            source: String,
            #[serde(default)]
            readings: Vec<String>,
            #[serde(rename = "claim", default)]
            claims: Vec<Claim>,
            $($table: Option<$plan>,)*
        }

        /// Names of the tables that describe a measurement.
        const TABLES: &[&str] = &[$(stringify!($table)),*];

        impl ExperimentFile {
            /// Takes out the plans of all tables that the file has.
            fn plans(&mut self) -> Vec<MeasurementPlan> {
                [$(self.$table.take().map(MeasurementPlan::$variant)),*].into_iter().flatten().collect()
            }
        }

        impl MeasurementPlan {
            /// Returns `true` if a metric of the plan is a time of runs, or depends on one.
            fn is_about_time(&self, claims: &[Claim]) -> bool {
                match self {
                    $(MeasurementPlan::$variant(plan) => plan.is_about_time(claims),)*
                }
            }

            fn measure(
                &self,
                subject: Subject<'_>,
                bench: &mut Workbench,
                note: &mut dyn FnMut(&str),
            ) -> Result<Measured> {
                match self {
                    $(MeasurementPlan::$variant(plan) => {
                        Ok(Measured::$variant(plan.measure(subject, bench, note)?))
                    })*
                }
            }
        }

        impl Measured {
            /// Returns the results in generic parts, for the renderers.
            #[must_use]
            pub fn outcome(&self) -> Outcome {
                match self {
                    $(Measured::$variant(data) => data.present(),)*
                }
            }
        }
    };
}

// The kinds of experiment. A new kind needs a line here.
kinds! {
    /// Metric over a sweep.
    figure: Figure(FigurePlan => FigureOutcome);
    /// Metrics over a study of caches.
    caching: Caching(CachingPlan => CachingOutcome);
    /// Tables over a comparison.
    comparison: Comparison(ComparisonPlan => ComparisonOutcome);
    /// Wear of a cache's PCM.
    wear: Wear(WearPlan => WearOutcome);
    /// Recovery of a cache after a crash.
    recovery: Recovery(RecoveryPlan => RecoveryOutcome);
    /// Garbage collection compared with theory.
    theory: Theory(TheoryPlan => TheoryOutcome);
    /// Latencies: an input, not a result.
    latency: Input(LatencyPlan => LatencyOutcome);
    /// Software time compared with the kernel's.
    software: Software(SoftwarePlan => SoftwareOutcome);
    /// Patterns of IOzone on modelled machines.
    patterns: Patterns(PatternsPlan => PatternsOutcome);
    /// Word query by in-storage processing and by software, on modelled machines.
    query: Query(QueryPlan => QueryOutcome);
    /// No result, with the reason.
    missing: Nothing(NotMeasurable => NotMeasured);
}

impl Experiment {
    /// Returns what the results say.
    pub(crate) fn findings(&self, outcome: &Outcome, runs: &[RunDoubts]) -> Vec<Finding> {
        let about_time = self.plan.is_about_time(&self.claims);
        of_experiment(self.claims.len(), about_time, outcome, runs)
    }

    /// Parses a description. Errors name it `name`.
    ///
    /// # Errors
    /// The description is invalid; the error contains the line.
    pub fn parse(name: &str, text: &str) -> Result<Experiment> {
        let bad = |why: String| Error::Description { name: name.into(), why };
        let mut file: ExperimentFile = toml::from_str(text).map_err(|e| bad(e.to_string()))?;
        let mut plans = file.plans();
        let (Some(plan), None) = (plans.pop(), plans.pop()) else {
            let tables: Vec<String> = TABLES.iter().map(|t| format!("[{t}]")).collect();
            return Err(bad(format!("needs exactly one of the tables {}", tables.join(", "))));
        };
        let ExperimentFile { id, title, source, readings, claims, .. } = file;
        if claims.is_empty() {
            return Err(bad("claims nothing: it needs at least one [[claim]]".into()));
        }
        let under = |c: &&Claim| c.id != id && !c.id.starts_with(&format!("{id}."));
        if let Some(c) = claims.iter().find(under) {
            return Err(bad(format!("the claim '{}' is not under its id '{id}'", c.id)));
        }
        let caching = matches!(plan, MeasurementPlan::Caching(_));
        let of_caching = |c: &&Claim| {
            c.agree.is_some() || c.bands.iter().any(|b| b.against.is_some() || !b.sizes.is_empty())
        };
        if let Some(c) = claims.iter().find(of_caching).filter(|_| !caching) {
            return Err(bad(format!(
                "the claim '{}' has agree, against or sizes, which need [caching]",
                c.id
            )));
        }
        Ok(Experiment { id, title, source, readings, claims, plan })
    }

    /// Measures the experiment. `note` is called with the name of each step that starts.
    ///
    /// # Errors
    /// A stack, a workload or the description fails.
    pub(crate) fn measure(&self, bench: &mut Workbench, note: &mut dyn FnMut(&str)) -> Result<Measured> {
        let subject = Subject { id: &self.id, claims: &self.claims };
        self.plan.measure(subject, bench, note)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "id = \"x\"\ntitle = \"t\"\nsource = \"s\"\n";

    fn parse(rest: &str) -> std::result::Result<Experiment, String> {
        Experiment::parse("x", &format!("{HEAD}{rest}")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_file_has_one_plan_and_a_claim() {
        let (plan, claim) = ("[missing]\nwhy = \"w\"\n", "[[claim]]\nid = \"x.y\"\npublished = \"p\"\n");
        let e = parse(&format!("{plan}{claim}")).unwrap();
        assert!(matches!(&e.plan, MeasurementPlan::Nothing(n) if n.why == "w"), "{e:?}");
        let none = parse(claim).unwrap_err();
        assert!(
            none.contains("one of the tables [figure], [caching], ") && none.ends_with("[missing]"),
            "{none}"
        );
        let second = "[recovery]\nstack = \"s\"\ncaches = []\ndirty = 0.5\n";
        assert!(parse(&format!("{plan}{second}{claim}")).unwrap_err().contains("exactly one"));
        assert!(parse(plan).unwrap_err().contains("claims nothing"));
        let rows = parse(&format!("{plan}{claim}agree = 0.5\n")).unwrap_err();
        assert!(rows.contains("need [caching]"), "{rows}");
        let other = claim.replace("x.y", "xy");
        assert!(parse(&format!("{plan}{other}")).unwrap_err().contains("not under its id 'x'"));
    }
}
