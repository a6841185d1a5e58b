//! Classification of arguments as stacks and workloads.

use crate::cmd::split_overrides;
use frit_stack::builtins;
use frit_trace::workload::GENERATOR_PREFIX;
use std::path::Path;

/// The classified arguments.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Inputs {
    pub(super) stacks: Vec<String>,
    pub(super) workloads: Vec<String>,
}

/// Classification of an argument.
enum ArgKind {
    Stack,
    Workload,
}

impl Inputs {
    /// Classifies plain arguments; `stacks` and `workloads` were given by explicit options.
    ///
    /// # Errors
    /// An argument is neither or ambiguous; there is no stack, or no workload.
    pub(super) fn sort(plain: &[String], stacks: &[String], workloads: &[String]) -> Result<Inputs, String> {
        let mut all = Inputs { stacks: Vec::new(), workloads: Vec::new() };
        for arg in plain {
            match kind(arg)? {
                ArgKind::Stack => all.stacks.push(arg.clone()),
                ArgKind::Workload => all.workloads.push(arg.clone()),
            }
        }
        all.stacks.extend_from_slice(stacks);
        all.workloads.extend_from_slice(workloads);
        if all.stacks.is_empty() {
            return Err(format!("no stack is given: name a .toml file, or one of {}", names()));
        }
        if all.workloads.is_empty() {
            return Err("no workload is given: name a trace file, '-' for standard input, or a generator \
                        such as gen:uniform,count=100k,size=4K,span=64M"
                .into());
        }
        if all.workloads.iter().filter(|w| *w == "-").count() > 1
            || all.workloads.iter().any(|w| w == "-") && all.stacks.len() > 1
        {
            return Err("standard input can be read only once: give it to one stack, or use a file".into());
        }
        Ok(all)
    }
}

fn names() -> String {
    builtins().iter().map(|b| b.name).collect::<Vec<_>>().join(", ")
}

fn kind(arg: &str) -> Result<ArgKind, String> {
    if arg == "-" || arg.starts_with(GENERATOR_PREFIX) {
        return Ok(ArgKind::Workload);
    }
    let (arg, sets) = split_overrides(arg);
    if !sets.is_empty() {
        return Ok(ArgKind::Stack);
    }
    let path = Path::new(arg);
    if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
        return Ok(ArgKind::Stack);
    }
    let builtin = builtins().iter().any(|b| b.name == arg);
    match (builtin, path.exists()) {
        (true, true) => {
            Err(format!("'{arg}' is a built-in stack and a file here: use --stack {arg} or --trace ./{arg}"))
        }
        (true, false) => Ok(ArgKind::Stack),
        // A name that looks like a file is a workload; opening it reports a missing file.
        (false, exists) if exists || arg.contains(['/', '.']) => Ok(ArgKind::Workload),
        _ => Err(format!(
            "'{arg}' is neither a stack nor a workload: there is no such file, the builtin stacks are {}, and \
             generators are written gen:NAME,key=value,…",
            names()
        )),
    }
}

/// Adds the run's seed, if one was given, to a generator without a seed.
pub(super) fn seeded(spec: &str, seed: Option<u64>) -> String {
    let (Some(seed), Some(rest)) = (seed, spec.strip_prefix(GENERATOR_PREFIX)) else { return spec.into() };
    // The seed of a mix is in its first part.
    let head = rest.split('+').next().unwrap_or(rest);
    if head.split(',').any(|field| field.trim().starts_with("seed=")) {
        return spec.into();
    }
    format!("{GENERATOR_PREFIX}{head},seed={seed}{}", &rest[head.len()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sort(plain: &[&str]) -> Result<Inputs, String> {
        let plain: Vec<String> = plain.iter().map(|s| (*s).to_owned()).collect();
        Inputs::sort(&plain, &[], &[])
    }

    #[test]
    fn arguments_are_told_apart_in_any_order() {
        let i = sort(&["gen:uniform", "hfsl-paper", "./a/b.TOML", "x.csv", "no-pcm"]).unwrap();
        assert_eq!(i.stacks, ["hfsl-paper", "./a/b.TOML", "no-pcm"]);
        assert_eq!(i.workloads, ["gen:uniform", "x.csv"]);
        for (args, part) in [
            (&["x.csv"][..], "no stack"),
            (&["hfsl-paper"], "no workload"),
            (&["hfsl-papre", "x.csv"], "neither a stack nor a workload"),
            (&["hfsl-paper", "no-pcm", "-"], "only once"),
        ] {
            let e = sort(args).unwrap_err();
            assert!(e.contains(part), "{args:?}: {e}");
        }
        let said = Inputs::sort(&[], &["odd".into()], &["odd".into()]).unwrap();
        assert_eq!((said.stacks, said.workloads), (vec!["odd".to_owned()], vec!["odd".to_owned()]));
    }

    #[test]
    fn generators_take_the_seed_that_they_do_not_have() {
        assert_eq!(seeded("gen:uniform", Some(7)), "gen:uniform,seed=7");
        assert_eq!(seeded("gen:zipf,seed=3,count=9", Some(7)), "gen:zipf,seed=3,count=9");
        assert_eq!(seeded("gen:mix,count=9+zipf,span=1M", Some(7)), "gen:mix,count=9,seed=7+zipf,span=1M");
        assert_eq!(
            (seeded("gen:zipf", None).as_str(), seeded("a.csv", Some(7)).as_str()),
            ("gen:zipf", "a.csv")
        );
    }
}
