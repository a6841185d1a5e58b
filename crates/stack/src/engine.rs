//! The `[engine]` table of a stack file: the simulation engine of a run, and the scheduler of its
//! command queues.

use crate::decode::{nearest, suggest, unknown_name};
use crate::error::Problem;
use crate::media::param_problem;
use crate::tree::{Data, Entry, Table};
use frit_core::Error;
use frit_engine::{AnyScheduler, Scheduler};
use std::borrow::Cow;
use strum::{EnumString, IntoStaticStr, VariantNames};

/// Kind of engine that a run uses.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, EnumString, IntoStaticStr, VariantNames)]
#[strum(serialize_all = "kebab-case")]
pub enum EngineKind {
    /// Units execute commands in order of emission. Fast; for the scheduler `fifo` only.
    #[default]
    InOrder,
    /// Units execute commands in the order of a scheduler.
    Event,
}

/// Engine of a stack.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Kind of engine. Default: `in-order` with the scheduler `fifo`, otherwise `event`.
    pub kind: EngineKind,
    /// Scheduler with its parameters. The in-order engine requires `fifo`.
    pub scheduler: AnyScheduler,
}

impl Default for EngineConfig {
    fn default() -> Self {
        EngineConfig { kind: EngineKind::InOrder, scheduler: AnyScheduler::Fifo(Default::default()) }
    }
}

impl EngineConfig {
    /// Returns the name of the scheduler.
    #[must_use]
    pub fn scheduler_name(&self) -> &'static str {
        (&self.scheduler).into()
    }
}

/// Name of the engine before version 0.3, whose times were approximate. Files that have it run on
/// the in-order engine.
const FORMER_KIND: &str = "eager";

/// Keys of `[engine]` that are not parameters of a scheduler.
const KEYS: [&str; 2] = ["kind", "scheduler"];

/// Compares names of parameters without regard to case, `_` or `-`, so that the paper's
/// MAX_CMD_SEND_COUNTER matches the scheduler's name for it.
fn same_name(a: &str, b: &str) -> bool {
    let plain = |s: &str| s.to_lowercase().replace('-', "_");
    plain(a) == plain(b)
}

/// Returns the parameters of a scheduler, as the scheduler names them.
fn params_of(name: &str) -> Vec<Cow<'static, str>> {
    name.parse::<AnyScheduler>()
        .map(|mut s| s.params().list().into_iter().map(|p| p.key).collect())
        .unwrap_or_default()
}

/// Returns `true` if `[engine]` can have this key with any scheduler.
pub(crate) fn has_key(key: &str) -> bool {
    KEYS.contains(&key)
        || AnyScheduler::VARIANTS.iter().any(|s| params_of(s).iter().any(|p| same_name(p, key)))
}

/// Reads the table. Warnings are about keys without effect.
pub(crate) fn read(
    table: &Table,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) -> Option<EngineConfig> {
    let before = problems.len();
    let scheduler = name(table, "scheduler", AnyScheduler::VARIANTS, problems).unwrap_or("fifo");
    let default = if scheduler == "fifo" { "in-order" } else { "event" };
    let kind = match table.get("kind") {
        Some(entry) if entry.value.as_str() == Some(FORMER_KIND) => {
            warnings.push(
                Problem::warning(format!(
                    "the engine `{FORMER_KIND}` was replaced by `in-order`, which is exact"
                ))
                .at(Some(entry.value.span.clone()), "runs as `in-order`"),
            );
            "in-order"
        }
        _ => name(table, "kind", EngineKind::VARIANTS, problems).unwrap_or(default),
    };
    let mut config = EngineConfig {
        kind: kind.parse().unwrap_or_default(),
        scheduler: scheduler.parse().unwrap_or(AnyScheduler::Fifo(Default::default())),
    };
    if config.kind != EngineKind::Event && scheduler != "fifo" {
        let at = table.get("kind").map(|e| e.value.span.clone());
        problems.push(
            Problem::new(format!(
                "the in-order engine executes commands in order of emission, not in the order of the scheduler '{scheduler}'"
            ))
            .at(at, "this engine")
            .help("use `kind = \"event\"`, or `scheduler = \"fifo\"`"),
        );
    }
    for entry in table.entries.iter().filter(|e| !KEYS.contains(&e.key.as_str())) {
        set_param(table, entry, &mut config, problems, warnings);
    }
    (problems.len() == before).then_some(config)
}

/// Returns the value of a key if it is one of the `known` names.
fn name<'a>(table: &'a Table, key: &str, known: &[&str], problems: &mut Vec<Problem>) -> Option<&'a str> {
    let entry = table.get(key)?;
    let given = entry.value.as_str();
    if given.is_none_or(|g| !known.contains(&g)) {
        let shown = given.map_or_else(|| entry.value.to_toml().to_string(), str::to_owned);
        problems.push(unknown_name("engine", entry, &shown, known));
        return None;
    }
    given
}

fn set_param(
    table: &Table,
    entry: &Entry,
    config: &mut EngineConfig,
    problems: &mut Vec<Problem>,
    warnings: &mut Vec<Problem>,
) {
    let scheduler = config.scheduler_name();
    let scheduler_keys = params_of(scheduler);
    let Some(key) = scheduler_keys.iter().find(|p| same_name(p, &entry.key)) else {
        let other =
            AnyScheduler::VARIANTS.iter().find(|s| params_of(s).iter().any(|p| same_name(p, &entry.key)));
        match other {
            Some(other) => warnings.push(
                Problem::warning(format!(
                    "`engine.{}` belongs to the scheduler '{other}' and has no effect with '{scheduler}'",
                    entry.key
                ))
                .at(Some(entry.span.clone()), "no effect"),
            ),
            None => problems.push(unknown(entry, scheduler, &scheduler_keys)),
        }
        return;
    };
    let value = match &entry.value.data {
        Data::Plain(toml::Value::String(s)) => s.clone(),
        _ => entry.value.to_toml().to_string(),
    };
    if let Err(e) = config.scheduler.params().set(key, &value) {
        // The error names the parameter as the scheduler does; the user needs the key as the file
        // has it.
        let e = match e {
            Error::Param { value, why, .. } => Error::Param { key: entry.key.clone(), value, why },
            other => other,
        };
        problems.push(param_problem("engine", table, "scheduler", e));
    }
}

fn unknown(entry: &Entry, scheduler: &str, scheduler_keys: &[Cow<'static, str>]) -> Problem {
    let known: Vec<&str> = KEYS.iter().copied().chain(scheduler_keys.iter().map(|k| &**k)).collect();
    let any: Vec<Cow<'static, str>> = AnyScheduler::VARIANTS.iter().flat_map(|s| params_of(s)).collect();
    let help = match nearest(&entry.key, any.iter().map(|k| &**k)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => suggest(&entry.key, &known),
    };
    Problem::new(format!("`engine` has no key `{}`, nor has the scheduler '{scheduler}'", entry.key))
        .at(Some(entry.span.clone()), "unknown key")
        .help(help)
}
