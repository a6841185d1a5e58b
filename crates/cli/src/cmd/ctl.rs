//! `frit ctl`: shows the state of a volume and changes its parameters, served or not.

mod direct;
mod show;
mod top;

use crate::output::{complain, print, print_json};
use frit_serve::ctl::{Client, ClientError, Do, Done, Param, SOCKET, Setting};
use frit_serve::metrics::Stat;
use miette::{IntoDiagnostic, Result, WrapErr, miette};
use std::io::ErrorKind;
use std::path::PathBuf;

/// Show the state of a volume and change its parameters, also while clients use it.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:
  frit ctl vol get                              all parameters: value, default, live or fixed
  frit ctl vol get SSW --json
  frit ctl vol set SSW=4K FUSION_METHOD=both    all of them or none; survives restarts, is written to vol/changes.log
  frit ctl vol stat                             channels, wear, commands by cause, where pages lie, latency
  frit ctl vol top --interval 2

A served volume is accessed through its socket; any other one is opened for the request. Only the user who serves it
and root may change parameters. See docs/control.md.")]
pub(crate) struct Args {
    /// Volume: a directory that frit create made.
    volume: PathBuf,
    #[command(subcommand)]
    what: What,
    /// Socket of its server. [default: VOLUME/ctl.sock]
    #[arg(long, value_name = "PATH", global = true)]
    socket: Option<PathBuf>,
}

#[derive(clap::Subcommand, Debug)]
enum What {
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
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.what {
        What::Get { key, json } => {
            let params = get(args, key.as_deref())?;
            if *json { print_json(&params) } else { print(&show::params(&params)) }
        }
        What::Set { changes } => {
            let changed = match client(args)? {
                Some(mut client) => match ask(&mut client, Do::Set { changes: changes.clone() })? {
                    Done::Changed(changed) => changed,
                    other => return Err(unexpected(&other)),
                },
                None => direct::set(&args.volume, changes)?,
            };
            print(&show::changes(changes, &changed))
        }
        What::Stat { json } => {
            let stat = stat(args)?;
            if *json { print_json(&stat) } else { print(&show::stat(&stat)) }
        }
        What::Top(top) => {
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
    }
}

/// Connects to the server of the volume; `None` if it is not served.
fn client(args: &Args) -> Result<Option<Client>> {
    let socket = args.socket.clone().unwrap_or_else(|| args.volume.join(SOCKET));
    match Client::connect(&socket) {
        Ok(client) => Ok(Some(client)),
        Err(e) if args.socket.is_none() && is_nobody(e.kind()) => Ok(None),
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
fn is_nobody(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::ConnectionRefused)
}

fn ask(client: &mut Client, what: Do) -> Result<Done> {
    client.ask(what).map_err(|e| match e {
        ClientError::Refused(refused) => miette!("{refused}"),
        other => miette!("{other}"),
    })
}

fn unexpected(answer: &Done) -> miette::Report {
    let what = match answer {
        Done::Params(_) => "parameters",
        Done::Changed(_) => "changes",
        Done::Stat(_) => "a view",
    };
    miette!("the server sent an unexpected reply: {what}")
}

fn get(args: &Args, key: Option<&str>) -> Result<Vec<Param>> {
    if let Some(mut client) = client(args)? {
        return match ask(&mut client, Do::Get { key: key.map(Into::into) })? {
            Done::Params(params) => Ok(params),
            other => Err(unexpected(&other)),
        };
    }
    let mut params = direct::params(&args.volume)?;
    if let Some(key) = key {
        if !params.iter().any(|p| p.key == key) {
            let known: Vec<&str> = params.iter().map(|p| &p.key[..]).collect();
            return Err(miette!("there is no parameter '{key}'; there are {}", known.join(", ")));
        }
        params.retain(|p| p.key == key);
    }
    Ok(params)
}

fn stat(args: &Args) -> Result<Stat> {
    match client(args)? {
        Some(mut client) => server_stat(&mut client),
        None => {
            complain(
                "not served: only the state of the media is shown; requests are counted while the volume is served\n",
            )?;
            direct::stat(&args.volume)
        }
    }
}

fn server_stat(client: &mut Client) -> Result<Stat> {
    match ask(client, Do::Stat {})? {
        Done::Stat(stat) => Ok(*stat),
        other => Err(unexpected(&other)),
    }
}
