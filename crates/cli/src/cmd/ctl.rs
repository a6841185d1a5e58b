//! `frit ctl`: shows the state of a volume and changes its parameters, served or not.

mod bytes;
mod extents;
mod hint;
mod offline;
mod query;
mod show;
mod top;
mod zones;

use crate::output::{print, print_json, print_stderr};
use frit_serve::ctl::{Client, ClientError, ControlOperation, Param, SOCKET, Setting, Success, full_key};
use frit_serve::metrics::Stat;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io::ErrorKind;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show the state of a volume and change its parameters, also while clients use it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit ctl vol get                            all parameters: value, default, live or fixed
  frit ctl vol get SSW --json
  frit ctl vol set SSW=4K FUSION_METHOD=both  all of them or none; they survive restarts
  frit ctl vol stat                           channels, wear, commands by cause, pages, latency
  frit ctl vol top --interval 2
  frit ctl vol hint add 0+64M=metadata        writes to this range are metadata
  frit ctl vol hint detect on                 recognise metadata of ext4, XFS and btrfs in writes
  frit ctl vol zones                          zones of a zoned device: states and write pointers
  frit ctl vol zones reset 3 4                make zones empty; their data are lost
  frit ctl vol peek 4096+64                   bytes of the volume, as the clients see them
  frit ctl vol poke 4100 00ff7a               write bytes; they are durable when the command ends
  frit ctl vol peek --raw pcm 0+512           bytes of PCM, for users that raw_access names
  frit ctl vol query error warn               count words in the whole volume, where the data lie
  frit ctl vol query --extent 1M+64K --extent 8M+4K --positions 3 error
  filefrag -e /mnt/log.txt | frit ctl vol query --filefrag - error      words of a file
  frit ctl vol isp '{\"filter\": {\"regex\": \"^E\"}, \"limit\": 10, \"extents\": [[1048576, 65536]]}'

A served volume is accessed through its socket; any other one is opened for the request. Only the user who serves it \
and root may change parameters, read bytes and write them. Changes are written to vol/changes.log. \
See docs/guide/control.md, and docs/guide/serve.md for hints.")]
pub(crate) struct Args {
    /// Volume: a directory that frit create made.
    volume: PathBuf,
    #[command(subcommand)]
    what: CtlCommand,
    /// Socket of its server. [default: VOLUME/ctl.sock]
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
enum CtlCommand {
    /// Show parameters.
    Get {
        /// Show only this parameter.
        key: Option<String>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Change parameters: all of them, or none.
    Set {
        /// Parameters with their new values.
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = setting)]
        changes: Vec<Setting>,
    },
    /// Show statistics: requests, media and their wear, locations of pages.
    Stat {
        /// Print JSON, the same as /visible of --metrics.
        #[arg(long)]
        json: bool,
    },
    /// Show rates, repeatedly.
    Top(top::Args),
    /// Show and change the hints that writes get: metadata, hot, cold.
    Hint(hint::Args),
    /// Show the zones of a zoned device, and manage them.
    Zones(zones::ZonesArgs),
    /// Show bytes of the volume.
    Peek(bytes::PeekArgs),
    /// Write bytes of the volume.
    Poke(bytes::PokeArgs),
    /// Count words in extents of the volume, and locate the first ones.
    Query(query::QueryArgs),
    /// Give an instruction to the processing engine, and print its result and payload.
    Isp(query::InstructionArgs),
}

/// Parses a parameter and its value.
fn setting(text: &str) -> Result<Setting, String> {
    match text.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => {
            Ok(Setting { key: key.trim().into(), value: value.trim().into() })
        }
        _ => Err(format!("'{text}' is not KEY=VALUE, such as SSW=4K")),
    }
}

/// Runs the command.
///
/// # Errors
/// The server refuses the request, or the volume cannot be opened.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        CtlCommand::Query(query) => query::query(args, query),
        CtlCommand::Isp(instruction) => query::instruction(args, instruction),
        other => show_or_change(args, other).map(|()| ExitCode::SUCCESS),
    }
}

fn show_or_change(args: &Args, what: &CtlCommand) -> Result<()> {
    match what {
        CtlCommand::Get { key, json } => {
            let params = get(args, key.as_deref())?;
            if *json { print_json(&params) } else { print(&show::params(&params)) }
        }
        CtlCommand::Set { changes } => {
            let changed = match client(args)? {
                Some(mut client) => {
                    match ask(&mut client, ControlOperation::Set { changes: changes.clone() })? {
                        Success::Changed(changed) => changed,
                        other => return Err(unexpected(&other)),
                    }
                }
                None => offline::set(&args.volume, changes)?,
            };
            print(&show::changes(changes, &changed))?;
            show::note(&changed).map_or(Ok(()), |note| print_stderr(&format!("note: {note}\n")))
        }
        CtlCommand::Stat { json } => {
            let stat = stat(args)?;
            if *json { print_json(&stat) } else { print(&show::stat(&stat)) }
        }
        CtlCommand::Zones(zones) => zones::run(args, zones),
        CtlCommand::Peek(peek) => bytes::peek(args, peek),
        CtlCommand::Poke(poke) => bytes::poke(args, poke),
        CtlCommand::Top(top) => {
            let Some(mut client) = client(args)? else {
                let volume = args.volume.display();
                return Err(miette!(
                    help = format!(
                        "start one: frit serve {volume} --nbd unix:{volume}/nbd.sock, or frit attach {volume}"
                    ),
                    "{volume} is not served: there are no rates to show"
                ));
            };
            top::run(top, &mut || server_stat(&mut client))
        }
        CtlCommand::Hint(hint) => hint::run(hint, client(args)?, &args.volume),
        CtlCommand::Query(_) | CtlCommand::Isp(_) => Ok(()),
    }
}

/// Connects to the server of the volume; `None` if it is not served.
fn client(args: &Args) -> Result<Option<Client>> {
    let socket = args.socket.clone().unwrap_or_else(|| args.volume.join(SOCKET));
    match Client::connect(&socket) {
        Ok(client) => Ok(Some(client)),
        Err(e) if args.socket.is_none() && is_not_served(e.kind()) => Ok(None),
        Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(miette!(
            help = "only the user who serves the volume and root have access, unless it is served with --ctl-read-all",
            "{}: {e}",
            socket.display()
        )),
        Err(e) => {
            Err(e).into_diagnostic().wrap_err_with(|| format!("cannot connect to {}", socket.display()))
        }
    }
}

/// Returns `true` if a connection error means that there is no server.
fn is_not_served(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

fn ask(client: &mut Client, what: ControlOperation) -> Result<Success> {
    client.request(what).map_err(|e| match e {
        ClientError::Refused(refused) => miette!("{refused}"),
        other => miette!("{other}"),
    })
}

fn unexpected(answer: &Success) -> miette::Report {
    let what = match answer {
        Success::Params(_) => "parameters",
        Success::Changed(_) => "changes",
        Success::Stat(_) => "a view",
        Success::Hints(_) => "hints",
        Success::Bytes(_) => "bytes",
        Success::Written(_) => "a number of bytes",
        Success::Cache(_) => "the answer to a command of a cache",
        Success::Nameless(_) => "the answer to a command of a nameless-write device",
        Success::Zoned(_) => "the answer to a command of a zoned device",
        Success::Isp(_) => "the result of an instruction",
    };
    miette!("the server sent an unexpected reply: {what}")
}

fn get(args: &Args, key: Option<&str>) -> Result<Vec<Param>> {
    if let Some(mut client) = client(args)? {
        return match ask(&mut client, ControlOperation::Get { key: key.map(Into::into) })? {
            Success::Params(params) => Ok(params),
            other => Err(unexpected(&other)),
        };
    }
    let mut params = offline::params(&args.volume)?;
    if let Some(key) = key {
        let full = full_key(params.iter().map(|p| &*p.key), key).map_err(|refused| miette!("{refused}"))?;
        let full = full.to_owned();
        params.retain(|p| p.key == full);
    }
    Ok(params)
}

fn stat(args: &Args) -> Result<Stat> {
    match client(args)? {
        Some(mut client) => server_stat(&mut client),
        None => {
            print_stderr(
                "not served: only the state of the media is shown; requests are counted while the volume is served\n",
            )?;
            offline::stat(&args.volume)
        }
    }
}

fn server_stat(client: &mut Client) -> Result<Stat> {
    match ask(client, ControlOperation::Stat {})? {
        Success::Stat(stat) => Ok(*stat),
        other => Err(unexpected(&other)),
    }
}
