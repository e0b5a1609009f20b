//! Lists of several pages, whose token may expire in between.

use super::{DEADLINE, REAP, is_first_pod_list, is_pod_list, run_in};
use crate::prelude::*;

/// Two pages of 500, also when some of them are gone.
const PODS: usize = 504;
/// The token of a list at revision 2, `{"rv":2,"start":"/load/dead-1"}` decoded. It is older than the API server's
/// cache, so that the server has to read from etcd.
const OLD_TOKEN: &str =
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Miwic3RhcnQiOiIvbG9hZC9kZWFkLTFcdTAwMDAifQ";

/// Compacts etcd, as happens every five minutes: an older list can then not be continued.
fn forget_history(cluster: &ControlPlane) {
    let revision = cluster.get("/api/v1/namespaces")["metadata"]["resourceVersion"].clone();
    let body = json!({"revision": revision, "physical": true}).to_string();
    // etcd's own gateway speaks JSON on the socket that the API server uses.
    let mut etcd = UnixStream::connect(cluster.dir.join("client:0")).expect("etcd listens");
    let head = "POST /v3/kv/compaction HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Type: application/json";
    write!(
        etcd,
        "{head}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .expect("etcd reads");
    let mut answer = String::new();
    etcd.read_to_string(&mut answer).expect("etcd answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

fn is_second_page(seen: &Seen) -> bool {
    is_pod_list(seen) && seen.path.contains("&continue=")
}

/// The API server's own answer to an expired token.
fn expired(server: &ControlPlane, seen: &Seen) -> Act {
    let (list, _) = seen
        .path
        .split_once("&continue=")
        .expect("it is a further page");
    let (status, answer) = server.request("GET", &format!("{list}&continue={OLD_TOKEN}"), None);
    assert_eq!(
        (status, &answer["reason"]),
        (410, &json!("Expired")),
        "{answer}"
    );
    Act::Instead(status, answer)
}

/// The first list as of a server whose cache is not ready: in pages.
fn from_etcd(server: &ControlPlane, seen: &Seen) -> Option<Act> {
    let list = seen
        .path
        .strip_suffix("&resourceVersion=0")
        .filter(|_| is_first_pod_list(seen))?;
    let (status, answer) = server.request("GET", list, None);
    Some(Act::Instead(status, answer))
}

/// Runs with the token expired for the second pages from `first` up to before `end`.
fn run_expiring(
    cluster: &Fresh,
    (first, end): (usize, usize),
    options: &[&str],
) -> (Run, Vec<Seen>) {
    let turn = AtomicUsize::new(0);
    let server = cluster.server();
    let proxy = Proxy::with_faults(server, move |seen| {
        let expires =
            is_second_page(seen) && (first..end).contains(&turn.fetch_add(1, Ordering::SeqCst));
        if expires {
            expired(server, seen)
        } else {
            from_etcd(server, seen).unwrap_or(Act::Forward)
        }
    });
    let run = run_in("load", &proxy.kubeconfig, DEADLINE, options);
    (run, proxy.seen())
}

#[test]
fn a_list_of_two_pages_is_read_whole_and_again_where_its_token_expires() {
    let cluster = fresh();
    one_dead_of_three(&cluster);
    let pods = load::pods(&cluster, &[("dead".to_owned(), PODS)], 0);
    until_overdue();
    forget_history(&cluster);
    let pages = |seen: &[Seen]| seen.iter().filter(|seen| is_pod_list(seen)).count();

    for (name, (first, end), asked) in [("in peace", (0, 0), 2), ("its token expires", (0, 1), 4)] {
        let (run, seen) = run_expiring(&cluster, (first, end), &["--dry-run=client"]);
        let said = run.report["pods"].as_array().expect("pods");
        assert_eq!(
            (run.code, said.len()),
            (0, PODS),
            "each once, {name}: {}",
            run.log
        );
        assert_eq!(
            said.iter().map(uid_of_entry).collect::<BTreeSet<_>>(),
            pods,
            "{name}"
        );
        assert_eq!(pages(&seen), asked, "{name}");
    }

    // The first page alone does not prove that there are no more pods.
    let (run, seen) = run_expiring(&cluster, (0, 99), &[]);
    assert_eq!(
        (run.code, &run.report["pods"]),
        (3, &json!([])),
        "{}",
        run.report
    );
    assert!(!seen.iter().any(Seen::is_write));

    // The verifying list has two pages too: pods on the second page are not gone.
    for (name, times, outcome) in [
        ("in peace", (0, 0), "deleted"),
        ("it expires", (1, 2), "deleted"),
        ("it keeps expiring", (1, 99), "unverified"),
    ] {
        let (run, _) = run_expiring(&cluster, times, &["--max-deletes=1"]);
        assert_eq!(
            run.report["summary"]["outcomes"][outcome], 1,
            "{name}: {}",
            run.log
        );
        let done = each(&run.report["pods"]).find(|pod| pod["reason"] == REAP);
        let done = uid_of_entry(done.expect("one within the cap"));
        let left = cluster.get("/api/v1/namespaces/load/pods");
        assert!(
            !each(&left["items"]).any(|pod| crate::uid(pod) == done),
            "{name}"
        );
    }
}
