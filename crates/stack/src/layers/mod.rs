//! The kinds of layers that a stack can have. To add a kind, add a file here, a variant of
//! [`LayerKind`] and of [`LayerConfig`], and the match arms that the compiler asks for.

pub(crate) mod cache;
pub(crate) mod composers;
pub(crate) mod flashcache;
pub(crate) mod flashtier;
pub(crate) mod ftl;
pub(crate) mod hfsl;
pub(crate) mod nameless;
pub(crate) mod nameless_device;
pub(crate) mod ntl;
pub(crate) mod ssc;
pub(crate) mod zns;

use crate::decode::{decode_checked as keys_of, unknown_name};
use crate::error::Problem;
use crate::media::param_problem;
use crate::sizing::SizeRule;
use crate::tree::Table;
use frit_compose::compress::CompressConfig;
use frit_compose::concat::ConcatConfig;
use frit_compose::delay::DelayConfig;
use frit_compose::dram_cache::DramCacheConfig;
use frit_compose::flaky::FlakyConfig;
use frit_compose::host_link::HostLinkConfig;
use frit_compose::mirror::MirrorConfig;
use frit_compose::record::RecordConfig;
use frit_compose::segments::SegmentsConfig;
use frit_compose::stripe::StripeConfig;
use frit_compose::thin::ThinConfig;
use frit_core::params::Phase;
use frit_core::{MediumKind, ParamDef, ParamInfo, ParamTable};
use frit_layer::cache::CacheMode;
use frit_layer::{
    CacheConfig, FlashcacheConfig, FlashtierConfig, FtlConfig, HfslConfig, NamelessBlockConfig,
    NamelessConfig, NtlConfig, SscBlockConfig, ZnsConfig,
};
use std::sync::OnceLock;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

/// The kinds of layers, by the names that stack files use.
#[derive(Clone, Copy, PartialEq, Eq, Debug, EnumString, IntoStaticStr, VariantNames, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum LayerKind {
    /// Hybrid of PCM and NAND: PCM as a cache, as storage, or as both.
    Hfsl,
    /// A page-mapped flash translation layer.
    Ftl,
    /// A disk behind a cache in PCM.
    Cache,
    /// A disk behind a solid-state cache of NAND.
    Flashtier,
    /// A volume over a nameless-write device.
    Nameless,
    /// A nameless-write device without a volume.
    NamelessDevice,
    /// A solid-state cache of NAND without a manager.
    Ssc,
    /// A zoned device of NAND.
    Zns,
    /// A disk behind an ordinary SSD as its cache.
    Flashcache,
    /// Address mapping for byte-addressable memory alone.
    Ntl,
    /// Devices one after the other.
    Concat,
    /// Chunks on devices in turn.
    Stripe,
    /// A delay of acknowledgements.
    Delay,
    /// Command queues and a link before a device.
    HostLink,
    /// A cache in the DRAM of a drive.
    DramCache,
    /// A device that fails by rules.
    Flaky,
    /// The same data on all devices.
    Mirror,
    /// A device of any size, whose chunks are allocated at the first write.
    Thin,
    /// Compressed chunks with checksums.
    Compress,
    /// A log of segments in an object store.
    Segments,
    /// A recording of requests.
    Record,
}

/// Interface that a role needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interface {
    /// A medium of this kind.
    Medium(MediumKind),
    /// A block device: a disk, or a layer.
    Block,
}

impl Interface {
    /// Returns the kind of medium that fills the role.
    #[must_use]
    pub fn medium(self) -> MediumKind {
        match self {
            Interface::Medium(kind) => kind,
            Interface::Block => MediumKind::Disk,
        }
    }
}

/// A role below a layer: a key of the layer's table that names a medium or another layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Role {
    /// Key in the layer's table.
    pub key: &'static str,
    /// Required interface.
    pub needs: Interface,
    /// `true` if the layer works without it.
    pub optional: bool,
    /// Number of names that the key takes.
    pub names: RoleNames,
    /// Purpose of the medium, for help texts.
    pub help: &'static str,
}

/// Number of media or layers that fill a role.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RoleNames {
    /// One name.
    One,
    /// One name, or a list of them.
    OneOrList,
    /// A list of two or more names.
    List,
}

impl RoleNames {
    /// Returns the least number of names in a list, or `None` if the key takes no list.
    #[must_use]
    pub fn least_in_list(self) -> Option<usize> {
        match self {
            RoleNames::One => None,
            RoleNames::OneOrList => Some(1),
            RoleNames::List => Some(2),
        }
    }

    /// Returns `true` if the key takes a single name that is not in a list.
    #[must_use]
    pub fn takes_one(self) -> bool {
        self != RoleNames::List
    }
}

/// A parameter value that a layer needs to be durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RequiredSetting {
    /// Name of the parameter.
    pub key: &'static str,
    /// Required value.
    pub value: &'static str,
    /// Reason, for messages.
    pub why: &'static str,
}

/// Settings that a layer needs, beside its defaults, so that acknowledged data is never lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Durability {
    /// Settings for durability of each request after a crash, or after a power loss of modelled
    /// media.
    pub each_request: &'static [RequiredSetting],
    /// Settings for durability after a power loss of the machine, with media in files.
    pub over_files: &'static [RequiredSetting],
}

/// Configuration of a layer, read from its table.
#[derive(Clone, PartialEq, Debug)]
pub enum LayerConfig {
    /// Configuration of HFSL.
    Hfsl(Box<HfslConfig>),
    /// Configuration of an FTL.
    Ftl(Box<FtlConfig>),
    /// Configuration of a disk cache.
    Cache(Box<CacheConfig>),
    /// Configuration of a disk behind a solid-state cache.
    Flashtier(Box<FlashtierConfig>),
    /// Configuration of a volume over a nameless-write device.
    Nameless(Box<NamelessConfig>),
    /// Configuration of a nameless-write device without a volume.
    NamelessDevice(Box<NamelessBlockConfig>),
    /// Configuration of a solid-state cache without a manager.
    Ssc(Box<SscBlockConfig>),
    /// Configuration of a zoned device.
    Zns(Box<ZnsConfig>),
    /// Configuration of a disk behind an ordinary SSD as its cache.
    Flashcache(Box<FlashcacheConfig>),
    /// Configuration of NTL.
    Ntl(Box<NtlConfig>),
    /// Configuration of a concatenation.
    Concat(ConcatConfig),
    /// Configuration of a stripe.
    Stripe(StripeConfig),
    /// Configuration of a delay.
    Delay(DelayConfig),
    /// Configuration of a host link.
    HostLink(HostLinkConfig),
    /// Configuration of a cache in DRAM.
    DramCache(DramCacheConfig),
    /// Configuration of a flaky device.
    Flaky(FlakyConfig),
    /// Configuration of a mirror.
    Mirror(MirrorConfig),
    /// Configuration of thin provisioning.
    Thin(ThinConfig),
    /// Configuration of compression.
    Compress(CompressConfig),
    /// Configuration of a log of segments.
    Segments(SegmentsConfig),
    /// Configuration of a recording.
    Record(RecordConfig),
}

/// Evaluates an expression with the configuration type of a kind of layer.
macro_rules! with_config_of {
    ($kind:expr, $config:ident => $value:expr) => {
        match $kind {
            LayerKind::Hfsl => {
                type $config = HfslConfig;
                $value
            }
            LayerKind::Ftl => {
                type $config = FtlConfig;
                $value
            }
            LayerKind::Cache => {
                type $config = CacheConfig;
                $value
            }
            LayerKind::Flashtier => {
                type $config = FlashtierConfig;
                $value
            }
            LayerKind::Nameless => {
                type $config = NamelessConfig;
                $value
            }
            LayerKind::NamelessDevice => {
                type $config = NamelessBlockConfig;
                $value
            }
            LayerKind::Ssc => {
                type $config = SscBlockConfig;
                $value
            }
            LayerKind::Zns => {
                type $config = ZnsConfig;
                $value
            }
            LayerKind::Flashcache => {
                type $config = FlashcacheConfig;
                $value
            }
            LayerKind::Ntl => {
                type $config = NtlConfig;
                $value
            }
            LayerKind::Concat => {
                type $config = ConcatConfig;
                $value
            }
            LayerKind::Stripe => {
                type $config = StripeConfig;
                $value
            }
            LayerKind::Delay => {
                type $config = DelayConfig;
                $value
            }
            LayerKind::HostLink => {
                type $config = HostLinkConfig;
                $value
            }
            LayerKind::DramCache => {
                type $config = DramCacheConfig;
                $value
            }
            LayerKind::Flaky => {
                type $config = FlakyConfig;
                $value
            }
            LayerKind::Mirror => {
                type $config = MirrorConfig;
                $value
            }
            LayerKind::Thin => {
                type $config = ThinConfig;
                $value
            }
            LayerKind::Compress => {
                type $config = CompressConfig;
                $value
            }
            LayerKind::Segments => {
                type $config = SegmentsConfig;
                $value
            }
            LayerKind::Record => {
                type $config = RecordConfig;
                $value
            }
        }
    };
}

/// Returns the names of the layers that serve requests of bytes, for messages.
#[must_use]
pub fn with_byte_access() -> Vec<&'static str> {
    LayerKind::all().iter().filter(|k| k.serves_bytes()).map(|k| k.name()).collect()
}

/// Returns the names of the layers that know the commands of a solid-state cache, for messages.
#[must_use]
pub fn with_cache_access() -> Vec<&'static str> {
    LayerKind::all().iter().filter(|k| k.has_cache_commands()).map(|k| k.name()).collect()
}

/// Returns the names of the layers that know the commands of a zoned device, for messages.
#[must_use]
pub fn with_zone_access() -> Vec<&'static str> {
    LayerKind::all().iter().filter(|k| k.has_zone_commands()).map(|k| k.name()).collect()
}

impl LayerKind {
    /// Returns all kinds.
    #[must_use]
    pub fn all() -> &'static [LayerKind] {
        <LayerKind as VariantArray>::VARIANTS
    }

    /// Returns the name that stack files use.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns a sentence about what the layer does, with its source.
    #[must_use]
    pub fn about(self) -> &'static str {
        match self {
            LayerKind::Hfsl => hfsl::ABOUT,
            LayerKind::Ftl => ftl::ABOUT,
            LayerKind::Cache => cache::ABOUT,
            LayerKind::Flashtier => flashtier::ABOUT,
            LayerKind::Nameless => nameless::ABOUT,
            LayerKind::NamelessDevice => nameless_device::ABOUT,
            LayerKind::Ssc => ssc::ABOUT,
            LayerKind::Zns => zns::ABOUT,
            LayerKind::Flashcache => flashcache::ABOUT,
            LayerKind::Ntl => ntl::ABOUT,
            LayerKind::Concat => composers::CONCAT,
            LayerKind::Stripe => composers::STRIPE,
            LayerKind::Delay => composers::DELAY,
            LayerKind::HostLink => composers::HOST_LINK,
            LayerKind::DramCache => composers::DRAM_CACHE,
            LayerKind::Flaky => composers::FLAKY,
            LayerKind::Mirror => composers::MIRROR,
            LayerKind::Thin => composers::THIN,
            LayerKind::Compress => composers::COMPRESS,
            LayerKind::Segments => composers::SEGMENTS,
            LayerKind::Record => composers::RECORD,
        }
    }

    /// Returns `true` for the small layers that are made for composition.
    #[must_use]
    pub fn is_composer(self) -> bool {
        !matches!(
            self,
            LayerKind::Hfsl
                | LayerKind::Ftl
                | LayerKind::Cache
                | LayerKind::Flashtier
                | LayerKind::Nameless
                | LayerKind::NamelessDevice
                | LayerKind::Ssc
                | LayerKind::Zns
                | LayerKind::Flashcache
                | LayerKind::Ntl
        )
    }

    /// Returns `true` if the layer serves requests that begin or end inside a sector.
    #[must_use]
    pub fn serves_bytes(self) -> bool {
        self == LayerKind::Hfsl
    }

    /// Returns `true` if the layer knows the commands of a solid-state cache.
    #[must_use]
    pub fn has_cache_commands(self) -> bool {
        self == LayerKind::Ssc
    }

    /// Returns `true` if the layer knows the commands of a zoned device.
    #[must_use]
    pub fn has_zone_commands(self) -> bool {
        self == LayerKind::Zns
    }

    /// Returns `true` if the layer keeps changes in DRAM until a flush, with or without a disk below
    /// it.
    #[must_use]
    pub fn commits_at_flush(self) -> bool {
        matches!(
            self,
            LayerKind::Flashtier
                | LayerKind::Nameless
                | LayerKind::NamelessDevice
                | LayerKind::Ssc
                | LayerKind::Flashcache
                | LayerKind::Thin
                | LayerKind::Compress
                | LayerKind::Segments
                | LayerKind::DramCache
        )
    }

    /// Returns `true` if the layer detects every damage to the contents of its device.
    #[must_use]
    pub fn verifies_device(self) -> bool {
        matches!(self, LayerKind::Compress | LayerKind::Segments)
    }

    /// Returns the roles of media below the layer.
    #[must_use]
    pub fn roles(self) -> &'static [Role] {
        match self {
            LayerKind::Hfsl => hfsl::ROLES,
            LayerKind::Ftl => ftl::ROLES,
            LayerKind::Cache => cache::ROLES,
            LayerKind::Flashtier => flashtier::ROLES,
            LayerKind::Nameless => nameless::ROLES,
            LayerKind::NamelessDevice => nameless_device::ROLES,
            LayerKind::Ssc => ssc::ROLES,
            LayerKind::Zns => zns::ROLES,
            LayerKind::Flashcache => flashcache::ROLES,
            LayerKind::Ntl => ntl::ROLES,
            LayerKind::Concat | LayerKind::Stripe | LayerKind::Mirror => composers::DEVICES,
            LayerKind::Thin
            | LayerKind::Compress
            | LayerKind::Delay
            | LayerKind::HostLink
            | LayerKind::DramCache
            | LayerKind::Flaky
            | LayerKind::Record => composers::DEVICE,
            LayerKind::Segments => composers::MAP_AND_STORE,
        }
    }

    /// Returns the parameters as the layer declares them.
    #[must_use]
    pub fn parameters(self) -> &'static [ParamDef] {
        with_config_of!(self, Config => {
            static TABLE: OnceLock<Vec<ParamDef>> = OnceLock::new();
            TABLE.get_or_init(Config::defs)
        })
    }

    /// Returns the names of the parameters.
    #[must_use]
    pub fn keys(self) -> Vec<&'static str> {
        self.parameters().iter().map(|p| p.key).collect()
    }

    /// Returns the parameters whose values are names from a list.
    pub fn choices(self) -> impl Iterator<Item = &'static ParamDef> {
        self.parameters().iter().filter(|p| !p.names.is_empty())
    }

    /// Returns the parameters with their defaults.
    #[must_use]
    pub fn defaults(self) -> Vec<ParamInfo> {
        let mut all = with_config_of!(self, Config => Config::default().list());
        for (info, def) in all.iter_mut().zip(self.parameters()) {
            if def.phase == Phase::Derived {
                info.value = "by the media".into();
            }
        }
        all
    }

    /// Returns the settings that the layer needs to be durable.
    #[must_use]
    pub fn durability(self) -> Durability {
        match self {
            LayerKind::Hfsl => hfsl::DURABILITY,
            LayerKind::Ftl => ftl::DURABILITY,
            LayerKind::Cache => cache::DURABILITY,
            LayerKind::Flashtier => flashtier::DURABILITY,
            LayerKind::Nameless => nameless::DURABILITY,
            LayerKind::NamelessDevice => nameless_device::DURABILITY,
            LayerKind::Ssc => ssc::DURABILITY,
            LayerKind::Zns => zns::DURABILITY,
            LayerKind::Flashcache => flashcache::DURABILITY,
            LayerKind::Ntl => ntl::DURABILITY,
            LayerKind::DramCache => composers::DRAM_CACHE_DURABILITY,
            LayerKind::Concat
            | LayerKind::Stripe
            | LayerKind::Mirror
            | LayerKind::Thin
            | LayerKind::Compress
            | LayerKind::Segments
            | LayerKind::Delay
            | LayerKind::HostLink
            | LayerKind::Flaky
            | LayerKind::Record => composers::DURABILITY,
        }
    }

    /// Decodes the parameters of a table and reports unknown names of policies.
    pub(crate) fn decode(
        self,
        path: &str,
        table: &Table,
        problems: &mut Vec<Problem>,
    ) -> Option<LayerConfig> {
        let before = problems.len();
        let config = match self {
            LayerKind::Hfsl => hfsl::decode(path, table, problems).map(|c| LayerConfig::Hfsl(Box::new(c))),
            LayerKind::Ftl => ftl::decode(path, table, problems).map(|c| LayerConfig::Ftl(Box::new(c))),
            LayerKind::Cache => cache::decode(path, table, problems).map(|c| LayerConfig::Cache(Box::new(c))),
            LayerKind::Flashtier => {
                flashtier::decode(path, table, problems).map(|c| LayerConfig::Flashtier(Box::new(c)))
            }
            LayerKind::Nameless => {
                nameless::decode(path, table, problems).map(|c| LayerConfig::Nameless(Box::new(c)))
            }
            LayerKind::NamelessDevice => nameless_device::decode(path, table, problems)
                .map(|c| LayerConfig::NamelessDevice(Box::new(c))),
            LayerKind::Ssc => ssc::decode(path, table, problems).map(|c| LayerConfig::Ssc(Box::new(c))),
            LayerKind::Zns => zns::decode(path, table, problems).map(|c| LayerConfig::Zns(Box::new(c))),
            LayerKind::Flashcache => {
                flashcache::decode(path, table, problems).map(|c| LayerConfig::Flashcache(Box::new(c)))
            }
            LayerKind::Ntl => ntl::decode(path, table, problems).map(|c| LayerConfig::Ntl(Box::new(c))),
            LayerKind::Concat => composers::decode(path, table, problems).map(LayerConfig::Concat),
            LayerKind::Stripe => composers::decode(path, table, problems).map(LayerConfig::Stripe),
            LayerKind::Delay => composers::decode(path, table, problems).map(LayerConfig::Delay),
            LayerKind::HostLink => composers::decode(path, table, problems).map(LayerConfig::HostLink),
            LayerKind::DramCache => composers::decode(path, table, problems).map(LayerConfig::DramCache),
            LayerKind::Flaky => composers::decode(path, table, problems).map(LayerConfig::Flaky),
            LayerKind::Mirror => composers::decode(path, table, problems).map(LayerConfig::Mirror),
            LayerKind::Thin => composers::decode(path, table, problems).map(LayerConfig::Thin),
            LayerKind::Compress => composers::decode(path, table, problems).map(LayerConfig::Compress),
            LayerKind::Segments => composers::decode(path, table, problems).map(LayerConfig::Segments),
            LayerKind::Record => composers::decode(path, table, problems).map(LayerConfig::Record),
        };
        for choice in self.choices() {
            let Some(entry) = table.get(choice.key) else { continue };
            let unknown = entry.value.as_str().filter(|g| !choice.names.contains(g));
            // A wrong keyword was already reported when its type was decoded.
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

    /// Decodes parameters that were decoded without errors before.
    pub(crate) fn decode_checked(self, table: &toml::Table) -> Option<LayerConfig> {
        match self {
            LayerKind::Hfsl => hfsl::decode_checked(table).map(|c| LayerConfig::Hfsl(Box::new(c))),
            LayerKind::Ftl => keys_of(table).map(|c| LayerConfig::Ftl(Box::new(c))),
            LayerKind::Cache => cache::decode_checked(table).map(|c| LayerConfig::Cache(Box::new(c))),
            LayerKind::Flashtier => {
                flashtier::decode_checked(table).map(|c| LayerConfig::Flashtier(Box::new(c)))
            }
            LayerKind::Nameless => keys_of(table).map(|c| LayerConfig::Nameless(Box::new(c))),
            LayerKind::NamelessDevice => {
                nameless_device::decode_checked(table).map(|c| LayerConfig::NamelessDevice(Box::new(c)))
            }
            LayerKind::Ssc => ssc::decode_checked(table).map(|c| LayerConfig::Ssc(Box::new(c))),
            LayerKind::Zns => keys_of(table).map(|c| LayerConfig::Zns(Box::new(c))),
            LayerKind::Flashcache => keys_of(table).map(|c| LayerConfig::Flashcache(Box::new(c))),
            LayerKind::Ntl => ntl::decode_checked(table).map(|c| LayerConfig::Ntl(Box::new(c))),
            LayerKind::Concat => keys_of(table).map(LayerConfig::Concat),
            LayerKind::Stripe => keys_of(table).map(LayerConfig::Stripe),
            LayerKind::Delay => keys_of(table).map(LayerConfig::Delay),
            LayerKind::HostLink => keys_of(table).map(LayerConfig::HostLink),
            LayerKind::DramCache => keys_of(table).map(LayerConfig::DramCache),
            LayerKind::Flaky => keys_of(table).map(LayerConfig::Flaky),
            LayerKind::Mirror => keys_of(table).map(LayerConfig::Mirror),
            LayerKind::Thin => keys_of(table).map(LayerConfig::Thin),
            LayerKind::Compress => keys_of(table).map(LayerConfig::Compress),
            LayerKind::Segments => keys_of(table).map(LayerConfig::Segments),
            LayerKind::Record => keys_of(table).map(LayerConfig::Record),
        }
    }
}

impl LayerConfig {
    /// Returns the given parameters that have no effect, each with the reason.
    pub(crate) fn unused(&self) -> Vec<(&'static str, &'static str)> {
        match self {
            LayerConfig::Hfsl(c) => c.unused(),
            LayerConfig::Ftl(c) => c.unused(),
            LayerConfig::Cache(c) => {
                let mut unused = c.unused();
                // The table of the policies does not know the mode.
                if c.mode == CacheMode::WriteAround && !c.read_caching {
                    unused.push(("policy", "nothing is cached: writes go around, and reads are not cached"));
                }
                unused
            }
            LayerConfig::Flashtier(c) => c.unused(),
            LayerConfig::Nameless(c) => c.unused(),
            LayerConfig::NamelessDevice(c) => c.without_effect(),
            LayerConfig::Ssc(c) => c.unused(),
            LayerConfig::Zns(c) => c.unused(),
            LayerConfig::Flashcache(c) => c.unused(),
            LayerConfig::Ntl(c) => c.unused(),
            LayerConfig::Concat(c) => c.unused(),
            LayerConfig::Stripe(c) => c.unused(),
            LayerConfig::Delay(c) => c.unused(),
            LayerConfig::HostLink(c) => c.unused(),
            LayerConfig::DramCache(c) => c.unused(),
            LayerConfig::Flaky(c) => c.unused(),
            LayerConfig::Mirror(c) => c.unused(),
            LayerConfig::Thin(c) => c.unused(),
            LayerConfig::Compress(c) => c.unused(),
            LayerConfig::Segments(c) => c.unused(),
            LayerConfig::Record(c) => c.unused(),
        }
    }

    /// Returns the rule by which the sizes below the layer follow from its capacity.
    pub(crate) fn size_rule(&self) -> SizeRule<'_> {
        match self {
            LayerConfig::Hfsl(_) => SizeRule::Media(hfsl::media_sizes),
            LayerConfig::Ftl(_) => SizeRule::Media(ftl::media_sizes),
            LayerConfig::Cache(_) => SizeRule::Devices(&cache::WholeBlocks),
            LayerConfig::Flashtier(_) => SizeRule::Devices(&flashtier::WholeBlocks),
            LayerConfig::Nameless(_) => SizeRule::Media(nameless::media_sizes),
            LayerConfig::NamelessDevice(_) => SizeRule::Media(nameless_device::media_sizes),
            LayerConfig::Ssc(_) => SizeRule::Media(ssc::media_sizes),
            LayerConfig::Zns(_) => SizeRule::Media(zns::media_sizes),
            LayerConfig::Flashcache(_) => SizeRule::Devices(&flashcache::WholeBlocks),
            LayerConfig::Ntl(_) => SizeRule::Media(ntl::media_sizes),
            LayerConfig::Concat(c) => SizeRule::Devices(c),
            LayerConfig::Stripe(c) => SizeRule::Devices(c),
            LayerConfig::Delay(c) => SizeRule::Devices(c),
            LayerConfig::HostLink(c) => SizeRule::Devices(c),
            LayerConfig::DramCache(c) => SizeRule::Devices(c),
            LayerConfig::Flaky(c) => SizeRule::Devices(c),
            LayerConfig::Mirror(c) => SizeRule::Devices(c),
            LayerConfig::Thin(c) => SizeRule::Devices(c),
            LayerConfig::Compress(c) => SizeRule::Devices(c),
            LayerConfig::Segments(c) => SizeRule::Devices(c),
            LayerConfig::Record(c) => SizeRule::Devices(c),
        }
    }

    /// Checks the constraints that do not depend on the media.
    fn check(&self) -> frit_core::Result<()> {
        match self {
            LayerConfig::Hfsl(c) => c.validate(),
            LayerConfig::Ftl(c) => c.validate(),
            LayerConfig::Cache(c) => c.validate(),
            LayerConfig::Flashtier(c) => c.validate(),
            LayerConfig::Nameless(c) => c.validate(),
            LayerConfig::NamelessDevice(c) => c.validate(),
            LayerConfig::Ssc(c) => c.validate(),
            LayerConfig::Zns(c) => c.validate(),
            LayerConfig::Flashcache(c) => c.validate(),
            LayerConfig::Ntl(c) => c.validate(),
            LayerConfig::Concat(c) => c.check_ranges(),
            LayerConfig::Stripe(c) => c.check_ranges(),
            LayerConfig::Delay(c) => c.check_ranges(),
            LayerConfig::HostLink(c) => c.check_ranges(),
            LayerConfig::DramCache(c) => c.check_ranges(),
            LayerConfig::Flaky(c) => c.check_ranges(),
            LayerConfig::Mirror(c) => c.check_ranges(),
            LayerConfig::Thin(c) => c.check_ranges(),
            LayerConfig::Compress(c) => c.check_ranges(),
            LayerConfig::Segments(c) => c.check_ranges(),
            LayerConfig::Record(c) => c.check_ranges(),
        }
    }
}
