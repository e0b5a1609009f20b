//! Servers that Prometheus scrapes.

use std::{
    env, fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value;

use crate::{in_repository, program::shown};

/// The longest time for a server to start, and to respond. Both usually take a tenth of a second.
const PATIENCE: Duration = Duration::from_mins(5);

/// A server of one test, which ends with the test.
pub struct Exporter {
    process: Child,
    /// The address on which it listens, as `127.0.0.1:PORT`.
    pub address: String,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Exporter {
    /// Starts a server. The server must choose a free port of `host` itself, and log it as Prometheus's servers do.
    #[track_caller]
    pub fn start(command: &Command, host: &str) -> Self {
        // The kernel kills the server when the test ends.
        let mut process = Command::new("setpriv")
            .args(["--pdeathsig", "KILL"])
            .arg(command.get_program())
            .args(command.get_args())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let log = BufReader::new(process.stderr.take().expect("it is piped"));
        let (sender, addresses) = mpsc::channel();
        let host = format!("{host}:");
        thread::spawn(move || {
            // Reads the output to the end; otherwise the server would block.
            for line in log.lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("address=")
                    && line.contains("Listening on")
                    && let Some(address) = address
                        .split(' ')
                        .next()
                        .map(|address| address.trim_matches('"'))
                    && address.starts_with(&host)
                {
                    let _ = sender.send(address.to_owned());
                }
            }
        });
        let address = addresses.recv_timeout(PATIENCE);
        let exporter = Self {
            process,
            address: address.unwrap_or_default(),
        };
        assert_ne!(exporter.address, "", "it did not start");
        exporter
    }

    /// The response that Prometheus would read. `headers` are lines that end with CR and LF.
    #[track_caller]
    pub fn scrape(&self, headers: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        write!(stream, "GET /metrics HTTP/1.0\r\n{headers}\r\n").expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        assert!(answer.starts_with("HTTP/1.0 200"), "{answer}");
        answer
    }
}

/// The path of a program that `scripts/need` fetches or builds.
#[track_caller]
pub fn needed(program: &str) -> PathBuf {
    let output = Command::new(in_repository("scripts/need"))
        .arg(program)
        .output()
        .expect("a script");
    assert!(output.status.success(), "{}", shown(&output));
    let path = String::from_utf8(output.stdout).expect("a PATH");
    let mut files = env::split_paths(path.trim_end()).map(|folder| folder.join(program));
    files
        .find(|file| file.exists())
        .expect("scripts/need finds it")
}

/// Has promtool evaluate `tests`, and fails unless they pass. Rule files are named by their path, or relative to `folder`, which is
/// written to.
#[track_caller]
pub fn rules_pass(folder: &Path, tests: &Value) {
    let file = folder.join("tests.yaml");
    // JSON is valid YAML.
    fs::write(&file, tests.to_string()).expect("our directory");
    let tested = Command::new(needed("promtool"))
        .args(["test", "rules"])
        .arg(&file)
        .output()
        .expect("promtool");
    assert!(tested.status.success(), "{}\n{tests:#}", shown(&tested));
}
