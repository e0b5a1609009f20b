//! Shell commands and the output of each: the files of `tests/data/transcripts`.

use std::{
    fs,
    path::Path,
    process::{Command, Output, Stdio},
};

use expect_test::expect_file;

/// Runs the lines of a file that begin with `$ `. The file has the output of each command below it, with the exit code unless
/// that is 0. `UPDATE_EXPECT=1` rewrites the output. Whether the output is right is for the reader of the file to judge.
pub fn plays(file: &Path, run: impl Fn(&str) -> (i32, String)) {
    let mut page = String::new();
    for line in fs::read_to_string(file).expect("a file").lines() {
        if line.starts_with('#') {
            page += &format!("{line}\n\n");
        }
        let Some(command) = line.strip_prefix("$ ") else {
            continue;
        };
        let (code, says) = run(command);
        let code = Some(code).filter(|code| *code != 0);
        let code = code.map_or_else(String::new, |code| format!("{code} "));
        let says = format!("$ {command}\n{code}{says}");
        page += &format!("{}\n\n", says.trim_end());
    }
    expect_file![file].assert_eq(&page);
}

/// A command line for bash. Bash knows the functions of `tests/data/transcripts`, and nothing of the environment except these
/// directories of programs. The output has both streams.
pub fn bash(command: &str, folders: &str) -> Command {
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("exec 2>&1\n{command}")])
        .env_clear()
        .env("PATH", folders)
        .env(
            "BASH_ENV",
            crate::in_repository("tests/data/transcripts/functions.sh"),
        )
        .stdin(Stdio::null());
    bash
}

/// Runs the command. Returns the exit code and the output.
pub fn ended(mut bash: Command) -> (i32, String) {
    let Output { status, stdout, .. } = bash.output().expect("bash starts");
    let says = String::from_utf8(stdout).expect("text");
    (status.code().expect("no signal ended it"), says)
}
