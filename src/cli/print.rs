//! The commands that need no cluster: completion scripts, the manual page, the version.

use std::io;

use clap::Subcommand;
use clap_complete::Shell;

use super::{command_line, map_options, values};

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Print {
    /// Print a completion script: bash, zsh or fish
    Completions {
        /// The shell
        #[arg(value_parser = values::shell())]
        shell: Shell,
    },
    /// Print the manual page
    Man,
    /// Print the version
    Version,
}

impl Print {
    /// Returns the text to print.
    pub fn text(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Completions { shell } => Ok(completions(*shell)),
            Self::Man => man(),
            Self::Version => Ok(command_line(None).render_version().into_bytes()),
        }
    }
}

fn completions(shell: Shell) -> Vec<u8> {
    let mut bytes = Vec::new();
    clap_complete::generate(shell, &mut command_line(None), "pod-reaper", &mut bytes);
    // The script for bash spells the name of a program with a hyphen in two ways, so it does not
    // find the options of subcommands (clap-rs/clap#6421).
    String::from_utf8_lossy(&bytes)
        .replace("pod__subcmd__reaper", "pod__reaper")
        .into_bytes()
}

/// Writes the manual page: the page of a run, followed by the options of `explain`. Options
/// that are not in the short help are un-hidden first, because they would have no text otherwise.
fn man() -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut whole = map_options(command_line(None), |arg| arg.hide_short_help(false));
    whole.build();
    clap_mangen::Man::new(whole.clone()).render(&mut bytes)?;
    if let Some(explain) = whole.find_subcommand("explain") {
        let named = explain.clone().display_name("pod-reaper explain");
        let page = clap_mangen::Man::new(named);
        bytes.extend_from_slice(b".SH \"POD-REAPER EXPLAIN\"\n");
        page.render_synopsis_section(&mut bytes)?;
        page.render_options_section(&mut bytes)?;
    }
    Ok(bytes)
}
