//! The command that needs no cluster: completion scripts.

use clap::Subcommand;
use clap_complete::Shell;

use super::{command_line, values};

#[derive(Debug, Clone, PartialEq, Eq, Subcommand)]
pub enum Print {
    /// Print a completion script: bash, zsh or fish
    Completions {
        /// The shell
        #[arg(value_parser = values::shell())]
        shell: Shell,
    },
}

impl Print {
    /// Returns the text to print.
    pub fn text(&self) -> Vec<u8> {
        let Self::Completions { shell } = self;
        let mut bytes = Vec::new();
        clap_complete::generate(*shell, &mut command_line(None), "pod-reaper", &mut bytes);
        // The script for bash spells the name of a program with a hyphen in two ways, so it does
        // not find the options of subcommands (clap-rs/clap#6421).
        String::from_utf8_lossy(&bytes)
            .replace("pod__subcmd__reaper", "pod__reaper")
            .into_bytes()
    }
}
