//! A plain HTTP proxy between pod-reaper and the API server: it tells a test what goes over the wire, and lets it act
//! between two requests.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::Instant,
};

use serde_json::Value;

use super::ControlPlane;

/// A request as it was sent.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// JSON, or null.
    pub body: Value,
    pub at: Instant,
}

impl Seen {
    /// Whether it would change something.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Whether the server is told not to.
    pub fn is_dry(&self) -> bool {
        self.body["dryRun"] == serde_json::json!(["All"]) || self.path.contains("dryRun=All")
    }
}

type Hook = dyn Fn(&Seen) -> Act + Send + Sync;

/// What becomes of a request.
#[derive(Debug, Clone)]
pub enum Act {
    /// It is passed on, and so is its answer.
    Forward,
    /// It is answered here.
    Instead(u16, Value),
    /// It is passed on, and this is the answer.
    After(u16, Value),
    /// It is passed on, and the connection is closed instead of an answer.
    Lose,
}

/// What becomes of the `Date` of an answer.
type Clock = fn(&str) -> Option<String>;

/// A running proxy; its threads end with the test program.
pub struct Proxy {
    /// For pod-reaper's `--kubeconfig`.
    pub kubeconfig: PathBuf,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Proxy {
    /// Passes everything on to `cluster`. `before` is called with each request before it is sent on.
    pub fn start(cluster: &'static ControlPlane, before: impl Fn(&Seen) + Send + Sync + 'static) -> Self {
        Self::with_clock(cluster, |date| Some(date.to_owned()), before)
    }

    /// As [`Proxy::start`], with another server's clock.
    pub fn with_clock(
        cluster: &'static ControlPlane,
        clock: Clock,
        before: impl Fn(&Seen) + Send + Sync + 'static,
    ) -> Self {
        let forward = move |seen: &Seen| {
            before(seen);
            Act::Forward
        };
        Self::listen(cluster, clock, Arc::new(forward))
    }

    /// As [`Proxy::start`], with answers that the API server does not give on demand.
    pub fn with_faults(
        cluster: &'static ControlPlane,
        act: impl Fn(&Seen) -> Act + Send + Sync + 'static,
    ) -> Self {
        Self::listen(cluster, |date| Some(date.to_owned()), Arc::new(act))
    }

    fn listen(cluster: &'static ControlPlane, clock: Clock, hook: Arc<Hook>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let kubeconfig = cluster.dir.join(format!("proxy-{}.kubeconfig", address.port()));
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: proxy\nclusters: [{{name: proxy, cluster: {{server: \
             'http://{address}'}}}}]\ncontexts: [{{name: proxy, context: {{cluster: proxy, user: nobody}}}}]\n\
             users: [{{name: nobody, user: {{}}}}]\n"
        );
        std::fs::write(&kubeconfig, config).expect("the folder is ours");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&seen);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, hook) = (Arc::clone(&log), Arc::clone(&hook));
                // A connection that breaks is the client's business.
                thread::spawn(move || serve(cluster, &stream, clock, &log, &*hook));
            }
        });
        Self { kubeconfig, seen }
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn serve(
    cluster: &ControlPlane,
    stream: &TcpStream,
    clock: Clock,
    log: &Mutex<Vec<Seen>>,
    hook: &Hook,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
        let mut words = head.split_whitespace().map(str::to_owned);
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut headers = Vec::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().expect("a number");
            } else if ["accept", "content-type", "user-agent"].contains(&name.to_ascii_lowercase().as_str()) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let seen = Seen {
            method: method.clone(),
            path: path.clone(),
            body: serde_json::from_slice(&body).unwrap_or_default(),
            at: Instant::now(),
        };
        log.lock().unwrap_or_else(PoisonError::into_inner).push(seen.clone());
        let forward = || cluster.forward(&method, &path, headers, body);
        let (status, date, body) = match hook(&seen) {
            Act::Forward => forward(),
            // With a real answer's date, so that only what is meant to be wrong is.
            Act::Instead(status, answer) => {
                let date = cluster.forward("GET", "/readyz", Vec::new(), Vec::new()).1;
                (status, date, answer.to_string().into_bytes())
            }
            Act::After(status, answer) => (status, forward().1, answer.to_string().into_bytes()),
            Act::Lose => {
                forward();
                return Ok(());
            }
        };
        let date =
            date.as_deref().and_then(clock).map(|date| format!("Date: {date}\r\n")).unwrap_or_default();
        write!(
            writer,
            "HTTP/1.1 {status} Answer\r\n{date}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )?;
        writer.write_all(&body)?;
    }
}
