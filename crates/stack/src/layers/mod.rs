//! The kinds of layers that a stack can have. A kind is one file here, and one line in [`Kind`].

pub(crate) mod cache;
pub(crate) mod hfsl;
pub(crate) mod ntl;
mod wear;

use crate::decode::{decode, unknown_name};
use crate::error::Problem;
use crate::media::param_problem;
use crate::tree::Table;
use crate::{Bytes, Stack};
use frit_core::{MediumKind, Null, ParamInfo};
use frit_layer::{CacheConfig, HfslConfig, NtlConfig};
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

/// A kind of layer, by the name that stack files use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumString, IntoStaticStr, VariantNames, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Kind {
    /// PCM and NAND, fused.
    Hfsl,
    /// A disk behind PCM.
    Cache,
    /// Byte-addressable memory alone.
    Ntl,
}

/// What a layer lies on: a key of its table that names a medium.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// The key.
    pub key: &'static str,
    /// What has to fill it.
    pub medium: MediumKind,
    /// Whether the layer works without.
    pub optional: bool,
    /// What it is for.
    pub help: &'static str,
}

/// Policies of a layer that are chosen by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// The parameter.
    pub key: &'static str,
    /// The names it can have.
    pub names: &'static [&'static str],
    /// Whether more can be added by a file of code: a policy, as against a keyword.
    pub open: bool,
}

/// A parameter without which a layer is not durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Setting {
    /// The parameter.
    pub key: &'static str,
    /// What it has to be.
    pub value: &'static str,
    /// What for.
    pub why: &'static str,
}

/// What a layer needs, beside its defaults, so that nothing that it promised is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Durability {
    /// At any stop of the program, or of modelled media.
    pub each_request: &'static [Setting],
    /// When the machine stops under media in files.
    pub over_files: &'static [Setting],
}

/// The parameters of the layer of a small stack, with their values there.
fn parameters_in(small: &str) -> crate::Result<Vec<ParamInfo>> {
    let mut built = Stack::parse("small", small, &[])?.build::<Null>(&Bytes::None)?;
    Ok(built.layer.params().list())
}

const fn keyword(key: &'static str, names: &'static [&'static str]) -> Choice {
    Choice { key, names, open: false }
}

const fn policy(key: &'static str, names: &'static [&'static str]) -> Choice {
    Choice { key, names, open: true }
}

/// A layer's parameters, read from its table.
#[derive(Clone, PartialEq, Debug)]
pub enum LayerConfig {
    /// Of HFSL.
    Hfsl(Box<HfslConfig>),
    /// Of a disk's cache.
    Cache(Box<CacheConfig>),
    /// Of address mapping on byte-addressable memory.
    Ntl(Box<NtlConfig>),
}

impl Kind {
    /// All kinds.
    #[must_use]
    pub fn all() -> &'static [Kind] {
        <Kind as VariantArray>::VARIANTS
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// What it does, in a sentence, and where it comes from.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            Kind::Hfsl => hfsl::ABOUT,
            Kind::Cache => cache::ABOUT,
            Kind::Ntl => ntl::ABOUT,
        }
    }

    /// What it lies on.
    #[must_use]
    pub fn roles(self) -> &'static [Role] {
        match self {
            Kind::Hfsl => hfsl::ROLES,
            Kind::Cache => cache::ROLES,
            Kind::Ntl => ntl::ROLES,
        }
    }

    /// The names of its parameters.
    #[must_use]
    pub fn keys(self) -> &'static [&'static str] {
        match self {
            Kind::Hfsl => hfsl::keys(),
            Kind::Cache => cache::keys(),
            Kind::Ntl => ntl::keys(),
        }
    }

    /// The policies that are chosen by name.
    #[must_use]
    pub fn choices(self) -> &'static [Choice] {
        match self {
            Kind::Hfsl => hfsl::CHOICES,
            Kind::Cache => cache::CHOICES,
            Kind::Ntl => ntl::CHOICES,
        }
    }

    /// Its parameters with their defaults; those that follow from the media are shown for a small stack.
    ///
    /// # Errors
    /// None, as a test shows.
    pub fn parameters(self) -> crate::Result<Vec<ParamInfo>> {
        match self {
            Kind::Hfsl => hfsl::parameters(),
            Kind::Cache => parameters_in(cache::SMALL),
            Kind::Ntl => parameters_in(ntl::SMALL),
        }
    }

    /// What it needs to be durable.
    #[must_use]
    pub fn durability(self) -> Durability {
        match self {
            Kind::Hfsl => hfsl::DURABILITY,
            Kind::Cache => cache::DURABILITY,
            Kind::Ntl => ntl::DURABILITY,
        }
    }

    /// Reads the parameters of a table.
    pub(crate) fn decode(
        self,
        path: &str,
        table: &Table,
        problems: &mut Vec<Problem>,
    ) -> Option<LayerConfig> {
        let before = problems.len();
        let config = match self {
            Kind::Hfsl => decode(path, table, self.keys(), problems).map(|c| LayerConfig::Hfsl(Box::new(c))),
            Kind::Cache => cache::decode(path, table, problems).map(|c| LayerConfig::Cache(Box::new(c))),
            Kind::Ntl => ntl::decode(path, table, problems).map(|c| LayerConfig::Ntl(Box::new(c))),
        };
        for choice in self.choices() {
            let Some(entry) = table.get(choice.key) else { continue };
            let unknown = entry.value.as_str().filter(|g| !choice.names.contains(g));
            // What is no policy but a keyword of the layer was reported by its type.
            if let Some(given) = unknown.filter(|_| choice.open) {
                problems.push(unknown_name(path, entry, given, choice.names));
            }
        }
        let config = config?;
        if problems.len() == before
            && let Err(e) = config.check()
        {
            problems.push(param_problem(path, table, "", e));
        }
        (problems.len() == before).then_some(config)
    }

    /// Reads parameters that were read before.
    pub(crate) fn reread(self, table: &toml::Table) -> Option<LayerConfig> {
        match self {
            Kind::Hfsl => HfslConfig::deserialize(table.clone()).ok().map(|c| LayerConfig::Hfsl(Box::new(c))),
            Kind::Cache => cache::reread(table).map(|c| LayerConfig::Cache(Box::new(c))),
            Kind::Ntl => ntl::reread(table).map(|c| LayerConfig::Ntl(Box::new(c))),
        }
    }
}

impl LayerConfig {
    /// Parameters that are given and have no effect, each with the reason.
    pub(crate) fn idle(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            LayerConfig::Hfsl(c) => hfsl::idle(c),
            LayerConfig::Cache(c) => cache::idle(c),
            LayerConfig::Ntl(c) => ntl::idle(c),
        }
    }

    /// Checks what can be checked without the media.
    fn check(&self) -> frit_core::Result<()> {
        match self {
            LayerConfig::Hfsl(c) => c.validate(),
            LayerConfig::Cache(c) => c.validate(),
            LayerConfig::Ntl(c) => c.validate(),
        }
    }
}
