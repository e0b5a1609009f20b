//! An HTTP proxy between pod-reaper and the API server. It records the requests, lets a test act between two requests, and can
//! change responses.
//!
//! The token of its kubeconfig and a header of every response are [`MARKER`], which must not be in any output.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread,
    time::Instant,
};

use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimeParser, tz::TimeZone};
use serde_json::{Value, json};

use super::{ControlPlane, Fresh};

/// The placeholder of every secret.
pub const MARKER: &str = "MARKER";

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
    /// Whether the request is a write.
    pub fn is_write(&self) -> bool {
        self.method != "GET"
    }

    /// Whether the request would write an Event.
    pub fn is_event(&self) -> bool {
        self.method == "POST" && self.path.starts_with("/apis/events.k8s.io/")
    }

    /// Whether the request would change an existing object.
    pub fn is_change(&self) -> bool {
        self.is_write() && !self.is_event()
    }

    /// Whether the request is marked as a dry run in the query. A delete must also be marked in the body, because the server
    /// reads only that mark.
    pub fn is_dry(&self) -> bool {
        let in_body = self.method != "DELETE" || self.body["dryRun"] == serde_json::json!(["All"]);
        in_body && self.path.contains("dryRun=All")
    }
}

type Before = dyn Fn(&Seen) + Send + Sync;
type After = dyn Fn(&Seen, &mut Reply) + Send + Sync;

/// A response.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    /// The headers, without the body's length and type.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    /// The `Date`: the server's clock.
    fn date(&mut self) -> Option<&mut String> {
        self.headers
            .iter_mut()
            .find(|(name, _)| name == "Date")
            .map(|(_, date)| date)
    }
}

/// The headers that reach the API server.
const PASSED_ON: [&str; 4] = ["accept", "content-type", "user-agent", "impersonate-user"];

/// The same time by another clock, as HTTP writes it.
fn shifted(date: &str, minutes: i64) -> String {
    let now: Timestamp = DateTimeParser::new().parse_timestamp(date).expect("a date");
    let then = (now + SignedDuration::from_mins(minutes)).to_zoned(TimeZone::UTC);
    then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// A running proxy; its threads end with the test program.
pub struct Proxy {
    /// For pod-reaper's `--kubeconfig`.
    pub kubeconfig: PathBuf,
    log: Arc<Mutex<Log>>,
}

#[derive(Default)]
struct Log {
    seen: Vec<Seen>,
    /// The API server's own status, by the index in `seen`.
    passed_on: Vec<(usize, u16)>,
    under_way: usize,
    most_under_way: usize,
}

impl Proxy {
    /// Forwards all requests to `cluster`.
    pub fn to(cluster: &Fresh) -> Self {
        Self::start(cluster.server(), |_| {})
    }

    /// Forwards all requests to `cluster`. `before` is called with each request before it is forwarded.
    pub fn start(
        cluster: &'static ControlPlane,
        before: impl Fn(&Seen) + Send + Sync + 'static,
    ) -> Self {
        Self::with(cluster, Arc::new(before), Arc::new(|_, _| {}))
    }

    /// Forwards all requests to `cluster`. `after` may change each response.
    pub fn rewriting(
        cluster: &'static ControlPlane,
        after: impl Fn(&Seen, &mut Reply) + Send + Sync + 'static,
    ) -> Self {
        Self::with(cluster, Arc::new(|_| {}), Arc::new(after))
    }

    /// Like [`Proxy::start`], as if this many minutes had passed. In that time, all nodes except these renewed their Leases, and
    /// nothing else happened.
    pub fn later(
        cluster: &'static ControlPlane,
        minutes: i64,
        silent: &'static [&'static str],
    ) -> Self {
        Self::rewriting(cluster, move |seen, reply| {
            if let Some(date) = reply.date() {
                *date = shifted(date, minutes);
            }
            let lease = seen.path.split_once("/kube-node-lease/leases/");
            let lives = lease.is_some_and(|(_, node)| !silent.contains(&node));
            let mut lease: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
            let renewed = lease["spec"]["renewTime"].as_str();
            if let Some(renewed) = renewed.filter(|_| lives) {
                let renewed: Timestamp = renewed.parse().expect("a time");
                let later = renewed + SignedDuration::from_mins(minutes);
                lease["spec"]["renewTime"] = json!(format!("{later:.6}"));
                reply.body = lease.to_string().into_bytes();
            }
        })
    }

    fn with(cluster: &'static ControlPlane, before: Arc<Before>, after: Arc<After>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("it is bound");
        let kubeconfig = cluster
            .dir
            .join(format!("proxy-{}.kubeconfig", address.port()));
        let config = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: proxy\nclusters: [{{name: proxy, cluster: {{server: \
             'http://{address}'}}}}]\ncontexts: [{{name: proxy, context: {{cluster: proxy, user: nobody}}}}]\n\
             users: [{{name: nobody, user: {{token: {MARKER}}}}}]\n"
        );
        std::fs::write(&kubeconfig, config).expect("the folder is ours");
        let log = Arc::new(Mutex::new(Log::default()));
        let shared = Arc::clone(&log);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&shared);
                let (before, after) = (Arc::clone(&before), Arc::clone(&after));
                // The client handles a broken connection.
                thread::spawn(move || serve(cluster, &stream, &log, (&*before, &*after)));
            }
        });
        Self { kubeconfig, log }
    }

    /// A kubeconfig for another user than the administrator.
    pub fn kubeconfig_of(&self, user: &str) -> PathBuf {
        let own = std::fs::read_to_string(&self.kubeconfig).expect("it was written");
        let kubeconfig = self.kubeconfig.with_extension("impersonating");
        let named = own.replace("user: {token", &format!("user: {{as: '{user}', token"));
        assert_ne!(named, own, "it is the kubeconfig that was written above");
        std::fs::write(&kubeconfig, named).expect("the folder is ours");
        kubeconfig
    }

    /// All requests so far.
    pub fn seen(&self) -> Vec<Seen> {
        held(&self.log).seen.clone()
    }

    /// The requests to which the API server responded with 2xx.
    pub fn took_effect(&self) -> Vec<Seen> {
        let log = held(&self.log);
        let good = log
            .passed_on
            .iter()
            .filter(|(_, status)| (200..300).contains(status));
        good.map(|(at, _)| log.seen[*at].clone()).collect()
    }

    /// The maximum number of requests that were in progress at the same time.
    pub fn most_under_way(&self) -> usize {
        held(&self.log).most_under_way
    }
}

fn held(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn serve(
    cluster: &ControlPlane,
    stream: &TcpStream,
    log: &Mutex<Log>,
    (before, after): (&Before, &After),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut head = String::new();
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
        let mut words = head.split_whitespace().map(str::to_owned);
        let (method, path) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        let mut headers = Vec::new();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().expect("a number");
            } else if PASSED_ON.contains(&name.to_ascii_lowercase().as_str()) {
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
        let place = {
            let mut log = held(log);
            log.seen.push(seen.clone());
            log.under_way += 1;
            log.most_under_way = log.most_under_way.max(log.under_way);
            log.seen.len() - 1
        };
        before(&seen);
        let (status, date, body) = cluster.forward(&method, &path, headers, body);
        let headers = date.map(|date| ("Date".to_owned(), date));
        let mut reply = Reply {
            status,
            headers: headers.into_iter().collect(),
            body,
        };
        after(&seen, &mut reply);
        {
            // The counter is updated before the response is sent, because the client's next request may follow it.
            let mut log = held(log);
            log.passed_on.push((place, status));
            log.under_way -= 1;
        }
        let Reply {
            status,
            headers,
            body,
        } = reply;
        write!(
            writer,
            "HTTP/1.1 {status} Answer\r\n{}: {}\r\n",
            PLANTED.0, PLANTED.1
        )?;
        for (name, value) in headers {
            write!(writer, "{name}: {value}\r\n")?;
        }
        write!(
            writer,
            "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )?;
        writer.write_all(&body)?;
    }
}

/// A header of every response.
const PLANTED: (&str, &str) = ("X-Planted", MARKER);
