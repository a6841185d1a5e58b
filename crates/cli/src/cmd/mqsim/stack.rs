//! The stack of a configuration of MQSim.

use super::Caching;
use super::channel::{
    ERASE_COMMAND, ERASE_PLANE, PROGRAM_COMMAND, PROGRAM_PLANE, READ_COMMAND, READ_PLANE, READ_READY, byte_ps,
};
use super::parameters::Parameters;
use miette::Result;
use std::fmt::Write as _;

/// Longest latency that is accepted, in ns.
const LATENCY_MAX: u64 = 1_000_000_000;
/// Smallest number of free blocks at which MQSim collects garbage: the victims that a plane may have at a time
/// (`GC_and_WL_Unit_Base.cpp`).
const GC_LOW_MIN: u64 = 10;
/// Spare bytes that frit needs for the record of a page.
const SPARE_MIN: u64 = 24;

/// Geometry of the NAND.
struct Geometry {
    channels: u64,
    chips: u64,
    dies: u64,
    planes: u64,
    blocks: u64,
    pages: u64,
    page_bytes: u64,
}

impl Geometry {
    fn read(p: &mut Parameters) -> Result<Geometry> {
        let geometry = Geometry {
            channels: p.number("Flash_Channel_Count", 1..=1024, None)?,
            chips: p.number("Chip_No_Per_Channel", 1..=1024, None)?,
            dies: p.number("Die_No_Per_Chip", 1..=64, None)?,
            // MQSim has command times for up to four planes.
            planes: p.number("Plane_No_Per_Die", 1..=4, None)?,
            blocks: p.number("Block_No_Per_Plane", 1..=1_000_000, None)?,
            pages: p.number("Page_No_Per_Block", 1..=65_536, None)?,
            page_bytes: p.number("Page_Capacity", 512..=65_536, None)?,
        };
        if !geometry.page_bytes.is_multiple_of(512) {
            return Err(p.refuse(
                "Page_Capacity",
                "not a multiple of 512",
                "valid: 512 to 65536, such as 8192",
            ));
        }
        Ok(geometry)
    }

    fn all_planes(&self) -> u64 {
        self.channels * self.chips * self.dies * self.planes
    }

    fn all_pages(&self) -> u64 {
        self.all_planes() * self.blocks * self.pages
    }
}

/// Writes the stack of a configuration.
///
/// # Errors
/// A value is malformed, or has no counterpart.
pub(super) fn translate(p: &mut Parameters, caching: Caching) -> Result<String> {
    p.word("Memory_Type", &["FLASH"])?;
    p.word("Flash_Comm_Protocol", &["NVDDR2"])?;
    let geometry = Geometry::read(p)?;
    let mut out = String::from("about = \"A drive of MQSim, translated by frit mqsim\"\n");
    nand(p, &geometry, &mut out)?;
    ftl(p, &geometry, &mut out)?;
    cache(p, &geometry, caching, &mut out)?;
    link(p, caching, &mut out)?;
    engine(p, &mut out)?;
    remarks(p, &mut out);
    Ok(out)
}

/// Appends formatted text. Writing to a string does not fail.
macro_rules! put {
    ($out:expr, $($text:tt)*) => {{
        let _ = writeln!($out, $($text)*);
    }};
}

/// Latencies of the types of pages, LSB first, each `more` ns longer than in the file.
fn latencies(p: &mut Parameters, what: &str, types: &[&str], more: u64) -> Result<String> {
    let mut all = Vec::new();
    for kind in types {
        let ns: u64 = p.number(&format!("Page_{what}_Latency_{kind}"), 0..=LATENCY_MAX, None)?;
        all.push(format!("\"{} ns\"", ns + more));
    }
    Ok(format!("[{}]", all.join(", ")))
}

fn nand(p: &mut Parameters, g: &Geometry, out: &mut String) -> Result<()> {
    let technology = p.word("Flash_Technology", &["MLC", "SLC", "TLC"])?;
    let types: &[&str] = match technology {
        "SLC" => &["LSB"],
        "MLC" => &["LSB", "MSB"],
        _ => &["LSB", "CSB", "MSB"],
    };
    let read = latencies(p, "Read", types, READ_READY)?;
    let program = latencies(p, "Program", types, 0)?;
    let erase: u64 = p.number("Block_Erase_Latency", 1..=LATENCY_MAX, None)?;
    let width: u64 = p.number("Flash_Channel_Width", 1..=64, Some(1))?;
    let rate: u64 = p.number("Channel_Transfer_Rate", 1..=100_000, None)?;
    let endurance: u64 = p.number("Block_PE_Cycles_Limit", 1..=u64::from(u32::MAX), Some(10_000))?;
    let spare: u64 = p.number("Page_Metadat_Capacity", 0..=65_536, Some(SPARE_MIN))?;
    let (plane_ops, byte) = (if g.planes == 1 { "single" } else { "multi" }, byte_ps(rate, width));
    put!(
        out,
        "\n[media.nand]\nmedium = \"nand\"\nchannels = {}\nchips_per_channel = {}",
        g.channels,
        g.chips
    );
    put!(out, "dies_per_chip = {}\nplanes_per_die = {}", g.dies, g.planes);
    put!(out, "plane_ops = \"{plane_ops}\"");
    put!(out, "blocks_per_plane = {}\npages_per_block = {}", g.blocks, g.pages);
    put!(out, "page_bytes = {}\nspare_bytes = {}", g.page_bytes, spare.max(SPARE_MIN));
    put!(out, "cell = \"{}\"", technology.to_lowercase());
    put!(out, "# Command and address cycles (ONFI_Channel_NVDDR2.cpp).");
    put!(out, "t_command = \"{READ_COMMAND} ns\"\nt_command_program = \"{PROGRAM_COMMAND} ns\"");
    put!(out, "t_command_erase = \"{ERASE_COMMAND} ns\"");
    if g.planes > 1 {
        put!(out, "t_plane_read = \"{READ_PLANE} ns\"\nt_plane_program = \"{PROGRAM_PLANE} ns\"");
        put!(out, "t_plane_erase = \"{ERASE_PLANE} ns\"");
    }
    put!(out, "# t_read has the {READ_READY} ns until MQSim's chip signals ready.");
    put!(out, "t_read = {read}\nt_prog = {program}\nt_erase = \"{erase} ns\"");
    put!(
        out,
        "# MQSim cuts 1000 / Channel_Transfer_Rate to whole ns; {rate} MT/s are {} ps a byte.",
        1_000_000 / (rate * width)
    );
    put!(out, "bus_per_byte = \"{byte} ps\"\nendurance = {endurance}");
    Ok(())
}

fn ftl(p: &mut Parameters, g: &Geometry, out: &mut String) -> Result<()> {
    let ratio: f64 = p.number("Overprovisioning_Ratio", 0.0..=0.9, Some(0.02))?;
    let capacity = (g.all_pages() as f64 * (1.0 - ratio)) as u64 * g.page_bytes;
    put!(
        out,
        "\n[ssd]\nkind = \"ftl\"\n# Overprovisioning_Ratio = {ratio} is a share of the NAND.\ncapacity = {capacity}"
    );
    match p.word("Address_Mapping", &["PAGE_LEVEL", "HYBRID"])? {
        "HYBRID" => {
            let hint = "MQSim has no code for it either: use PAGE_LEVEL, or mapping = \"fast\" of frit";
            return Err(p.refuse("Address_Mapping", "no counterpart", hint));
        }
        _ => mapping(p, g, out)?,
    }
    put!(out, "# MQSim transfers the sectors of a request only.\npartial_transfers = true");
    placement(p, out)?;
    let threshold: f64 = p.number("GC_Exec_Threshold", 0.0..=1.0, Some(0.05))?;
    let low = ((threshold * g.blocks as f64) as u64).max(GC_LOW_MIN);
    let policy =
        p.word("GC_Block_Selection_Policy", &["RGA", "GREEDY", "FIFO", "RANDOM", "RANDOM_P", "RANDOM_PP"])?;
    match policy {
        "GREEDY" | "FIFO" => {}
        "RGA" => {
            put!(out, "# RGA takes the best of {} random blocks, greedy the best of all.", g.blocks.ilog2());
        }
        _ => put!(out, "# {policy} is not modelled: greedy has less write amplification."),
    }
    put!(out, "gc = \"{}\"", if policy == "FIFO" { "fifo" } else { "greedy" });
    put!(out, "gc_low_blocks = {low}\ngc_high_blocks = {}", low + 1);
    put!(out, "# MQSim copies a victim as a whole.");
    put!(out, "gc_pacing = \"all-at-once\"");
    put!(out, "copyback = {}", p.flag("Use_Copyback_for_GC", false)?);
    let (dynamic, fixed) =
        (p.flag("Dynamic_Wearleveling_Enabled", true)?, p.flag("Static_Wearleveling_Enabled", true)?);
    let wear_leveling = if fixed {
        "static"
    } else if dynamic {
        "dynamic"
    } else {
        "none"
    };
    let threshold: u64 = p.number("Static_Wearleveling_Threshold", 1..=1_000_000, Some(100))?;
    put!(out, "wear_leveling = \"{wear_leveling}\"\nwear_threshold = {threshold}");
    Ok(())
}

fn mapping(p: &mut Parameters, g: &Geometry, out: &mut String) -> Result<()> {
    let bytes: u64 = p.number("CMT_Capacity", 1..=1 << 40, Some(2 << 20))?;
    if p.flag("Ideal_Mapping_Table", false)? {
        put!(out, "# Ideal_Mapping_Table = true: CMT_Capacity is without effect.\nmapping = \"page\"");
        return Ok(());
    }
    // Address_Mapping_Unit_Page_Level.cpp: an entry has two page numbers, and a bit for each sector.
    let bits = 2.0 * (g.all_pages() as f64).log2() + (g.page_bytes / 512) as f64;
    let entries = (bytes / ((bits / 8.0).ceil() as u64)).max(1);
    put!(out, "# CMT_Capacity = {bytes} bytes. MQSim writes an entry back when it is evicted, as frit does.");
    put!(out, "mapping = \"dftl\"\ncmt_entries = {entries}");
    Ok(())
}

fn placement(p: &mut Parameters, out: &mut String) -> Result<()> {
    let name = "Plane_Allocation_Scheme";
    let scheme = p.text(name).unwrap_or_else(|| "CWDP".to_owned()).to_uppercase();
    if scheme == "F" {
        put!(out, "allocation = \"dynamic\"");
        return Ok(());
    }
    let mut letters: Vec<char> = scheme.chars().collect();
    letters.sort_unstable();
    if letters != ['C', 'D', 'P', 'W'] {
        return Err(p.refuse(name, "unknown", "valid: the letters C, W, D and P in any order, or F"));
    }
    put!(out, "allocation = \"static\"\nunit_order = \"{scheme}\"");
    Ok(())
}

/// Writes the data cache of the drive.
fn cache(p: &mut Parameters, g: &Geometry, caching: Caching, out: &mut String) -> Result<()> {
    let Some(mode) = caching.mode() else { return Ok(()) };
    if p.word("Caching_Mechanism", &["ADVANCED", "SIMPLE"])? == "SIMPLE" {
        put!(out, "\n# Caching_Mechanism = SIMPLE: MQSim ends with an error unless the cache is turned off.");
    }
    let capacity: u64 = p.number("Data_Cache_Capacity", 512..=1 << 40, Some(512 << 20))?;
    put!(out, "\n[cache]\nkind = \"dram-cache\"\ndevice = \"ssd\"\nmode = \"{mode}\"");
    put!(out, "capacity = {capacity}\npage = {}", g.page_bytes);
    put!(out, "# As many pages as there are planes (SSD_Device.cpp).");
    put!(out, "write_back = {}", g.all_planes() * g.page_bytes);
    put!(
        out,
        "# Pages that were written within the last second stay (bloom_filter_reset_step).\nhot_ms = 1000"
    );
    for (key, name, most, default) in [
        ("row", "Row_Size", 1 << 20, 8192),
        ("rate", "Data_Rate", 100_000, 800),
        ("burst", "Data_Busrt_Size", 512, 4),
    ] {
        let value: u64 = p.number(&format!("Data_Cache_DRAM_{name}"), 1..=most, Some(default))?;
        put!(out, "{key} = {value}");
    }
    for (key, name) in [("t_rcd", "tRCD"), ("t_cl", "tCL"), ("t_rp", "tRP")] {
        let value: u64 = p.number(&format!("Data_Cache_DRAM_{name}"), 0..=1_000_000, Some(13))?;
        put!(out, "{key} = {value}");
    }
    Ok(())
}

fn link(p: &mut Parameters, caching: Caching, out: &mut String) -> Result<()> {
    let lanes: u64 = p.number("PCIe_Lane_Count", 1..=64, Some(4))?;
    // GB/s, which is bytes a ns.
    let rate: f64 = p.number("PCIe_Lane_Bandwidth", 0.001..=1000.0, Some(1.0))?;
    let device = if caching.mode().is_some() { "cache" } else { "ssd" };
    put!(out, "\n[link]\nkind = \"host-link\"\ndevice = \"{device}\"");
    put!(out, "nvme_lanes = {lanes}\nlane_mb_per_s = {}", (rate * 1000.0).round() as u64);
    Ok(())
}

fn engine(p: &mut Parameters, out: &mut String) -> Result<()> {
    let policy =
        p.word("Transaction_Scheduling_Policy", &["OUT_OF_ORDER", "PRIORITY_OUT_OF_ORDER", "FLIN"])?;
    put!(out, "\n[engine]");
    if policy != "OUT_OF_ORDER" {
        put!(out, "# {policy} is not modelled: requests of all flows have the same priority.");
    }
    put!(out, "scheduler = \"out-of-order\"");
    put!(out, "# MQSim gives an idle chip commands for one die (issue_command_to_chip returns in its loop).");
    put!(out, "interleave-dies = false");
    put!(out, "# Preemptible_GC_Enabled: requests of the host precede garbage collection.");
    put!(out, "gc-first = {}", !p.flag("Preemptible_GC_Enabled", true)?);
    Ok(())
}

/// Writes the parameters that have no key, each with the reason.
fn remarks(p: &mut Parameters, out: &mut String) {
    put!(out, "\n# Parameters of MQSim that this stack does not have:");
    for (name, value) in p.rest() {
        put!(out, "# {name} = {}: {}", value.replace(char::is_control, " "), reason(&name));
    }
}

/// Returns the reason for which a parameter has no key.
fn reason(name: &str) -> &'static str {
    match name {
        "Seed" => "generators and --warm have seeds of their own",
        "Enabled_Preconditioning" => "frit run --warm fill, or --warm steady",
        "HostInterface_Type" => "NVMe; SATA has one link for both directions, which host-link has not",
        "Queue_Fetch_Size" => "the largest --qd at which MQSim has all requests in the device",
        "IO_Queue_Depth" => "frit run --qd",
        "Caching_Mechanism" | "Data_Cache_Capacity" => "the cache is off (--caching)",
        "Data_Cache_Sharing_Mode" => "all flows share the cache",
        "CMT_Sharing_Mode" => "all flows share the table",
        "GC_Hard_Threshold" => {
            "free blocks at which garbage collection precedes requests also if it is preemptible: gc-first"
        }
        "CMD_Suspension_Support" | "Suspend_Erase_Time" | "Suspend_Program_Time" | "Suspend_Write_Time" => {
            "MQSim's scheduler never suspends (TSU_OutofOrder.cpp); media.nand.suspend does"
        }
        "Page_Read_Latency_CSB"
        | "Page_Program_Latency_CSB"
        | "Page_Read_Latency_MSB"
        | "Page_Program_Latency_MSB" => "the cells have no such page",
        _ if name.starts_with("Prefer") => {
            "as Suspend_Erase_Time: media.nand.suspend_min_erase, suspend_min_program"
        }
        _ if name.starts_with("Data_Cache_DRAM_") => "the cache is off (--caching)",
        _ if name.contains("ResponseTime_Logging") => "frit run --requests",
        _ => "unknown to frit",
    }
}
