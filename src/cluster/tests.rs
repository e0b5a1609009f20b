//! Tests of reading responses and judging failures, without a real server.

use std::{convert::Infallible, error::Error, fmt, time::Duration};

use pod_reaper_test_support::{
    samples::{objects, yaml},
    simulated::{Fate, Fault, Objects, Request, Server},
};

use expect_test::expect;
use http::StatusCode;
use jiff::Timestamp;
use kube::client::{AuthError, Body};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use crate::{
    facts::PodsOf,
    kubernetes::{Holders, RawNode, RawPod},
    report::samples::{audit, judged},
    selector::NodeSelectors,
    source::Source as _,
};

use super::{
    failure::{status_of, unreadable},
    request::{Response, http_date},
    *,
};

fn said(code: u16, kind: StatusKind, message: &str) -> Failure {
    Failure::Status {
        code,
        message: message.to_owned(),
        kind,
        retry_after: None,
    }
}

fn status(code: u16) -> Failure {
    said(code, StatusKind::Other, "")
}

fn busy(seconds: u64) -> Failure {
    Failure::Status {
        code: 429,
        message: String::new(),
        kind: StatusKind::Other,
        retry_after: Some(Duration::from_secs(seconds)),
    }
}

#[test]
fn the_servers_clock_is_read_as_http_writes_it() {
    let read = |text| http_date(text).map(|moment| moment.to_string());
    assert_eq!(
        read("Sat, 31 Jan 2026 03:00:00 GMT").as_deref(),
        Some("2026-01-31T03:00:00Z")
    );
    assert_eq!(
        read("Sun, 06 Nov 1994 08:49:37 GMT").as_deref(),
        Some("1994-11-06T08:49:37Z")
    );
    // Go writes no other form. A date that cannot be read is treated as absent, and nothing is
    // deleted without a date.
    for text in [
        "",
        "now",
        "1769828400",
        "2026-01-31T03:00:00Z",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
        "Mon, 31 Jan 2026 03:00:00 GMT",
        "Sat, 32 Jan 2026 03:00:00 GMT",
        "Sat, 31 Jan 2026 25:00:00 GMT",
    ] {
        assert_eq!(read(text), None, "{text:?}");
    }
}

#[test]
fn the_message_is_the_one_of_a_status_object_and_nothing_else() {
    let said = |code: u16, body: &str| {
        status_of(
            StatusCode::from_u16(code).expect("a status"),
            body.as_bytes(),
        )
        .1
    };
    let forbidden = r#"{"kind":"Status","code":403,"message":"pods is forbidden","details":{"secret":"MARKER"}}"#;
    assert_eq!(said(403, forbidden), "pods is forbidden");
    for (name, body) in [
        ("nothing", ""),
        ("a page of a proxy", "<html>MARKER</html>"),
        ("another object", r#"{"kind":"Secret","message":"MARKER"}"#),
        ("no kind", r#"{"message":"MARKER"}"#),
        ("no message", r#"{"kind":"Status","reason":"MARKER"}"#),
        (
            "a malformed message",
            r#"{"kind":"Status","message":["MARKER"]}"#,
        ),
        ("cut off", r#"{"kind":"Status","message":"MARKER""#),
    ] {
        assert_eq!(said(502, body), "Bad Gateway", "{name}");
    }
    assert_eq!(said(599, "MARKER"), "", "a code without a name");
}

/// A write that was not clearly refused may have taken effect. Only failures of credentials and
/// permissions forbid.
#[test]
fn each_failure_is_retried_where_it_passes_and_says_whether_a_write_may_have_taken_effect() {
    const WEBHOOK: &str =
        r#"Internal error occurred: failed calling webhook "w": Post "https://w": refused"#;
    let timeout = Failure::Timeout(Duration::from_secs(10));
    let within_micros = |micros| Failure::Timeout(Duration::from_micros(micros));
    let too_late = Failure::NotSent("the node was looked at too long ago");
    let transport = Failure::Transport("no connection: connection reset".to_owned());
    let unreadable = Failure::Unreadable("it is not JSON".to_owned());
    let (passes, stays, maybe, never, forbids, not) = (true, false, true, false, true, false);
    let rows = [
        (status(301), stays, never, not),
        (status(400), stays, never, not),
        (status(401), stays, never, forbids),
        (status(403), stays, never, forbids),
        (status(404), stays, never, not),
        (status(409), stays, never, not),
        (status(410), stays, never, not),
        (status(422), stays, never, not),
        (status(429), passes, never, not),
        (status(500), passes, maybe, not),
        (status(501), stays, maybe, not),
        (status(502), passes, maybe, not),
        (status(503), passes, maybe, not),
        (status(504), passes, maybe, not),
        (timeout.clone(), passes, maybe, not),
        (transport.clone(), passes, maybe, not),
        (unreadable.clone(), stays, maybe, not),
        // Admission comes before the write, so nothing was written.
        (said(500, StatusKind::Webhook, WEBHOOK), stays, never, not),
        // A write is sent again only after another reading of its node.
        (too_late.clone(), passes, never, not),
    ];
    let doubling = [200, 400, 800].map(Duration::from_millis).map(Some);
    for (failure, passes, maybe, forbids) in rows {
        let pauses = [1, 2, 3].map(|tried| failure.pause(tried));
        assert_eq!(
            pauses,
            if passes { doubling } else { [None; 3] },
            "{failure:?}"
        );
        assert_eq!(failure.may_have_taken_effect(), maybe, "{failure:?}");
        assert_eq!(failure.forbids(), forbids, "{failure:?}");
    }
    for (failure, phrase) in [
        (
            said(403, StatusKind::Other, "pods is forbidden"),
            "the API server responded with 403: pods is forbidden",
        ),
        (status(599), "the API server responded with 599"),
        (timeout, "no response within 10 s"),
        (within_micros(4_500_000), "no response within 4.5 s"),
        (within_micros(1_234_567), "no response within 1.235 s"),
        (within_micros(40_000), "no response within 0.04 s"),
        (transport, "no connection: connection reset"),
        (unreadable, "the response could not be read: it is not JSON"),
        (too_late, "not sent: the node was looked at too long ago"),
    ] {
        assert_eq!(failure.to_string(), phrase);
    }
}

#[test]
fn a_retry_waits_as_long_as_the_server_asks_unless_that_is_too_long() {
    let seconds = |seconds| Some(Duration::from_secs(seconds));
    assert_eq!(
        busy(0).pause(1),
        Some(Duration::from_millis(200)),
        "at least our own pause"
    );
    assert_eq!(busy(1).pause(1), seconds(1));
    assert_eq!(busy(0).pause(3), Some(Duration::from_millis(800)));
    assert_eq!(busy(5).pause(1), seconds(5));
    assert_eq!(busy(6).pause(1), None);
    assert_eq!(busy(u64::MAX).pause(1), None);
}

#[test]
fn what_a_parser_read_is_never_repeated() {
    #[derive(Debug, Deserialize)]
    struct Wanted {
        #[expect(dead_code, reason = "only its type matters")]
        number: u8,
    }
    for (body, cause) in [
        (
            r#"{"number": "MARKER"}"#,
            "a field has an unexpected type (line 1, column 19)",
        ),
        (
            "{\n\"MARKER\": 1}",
            "a field has an unexpected type (line 2, column 12)",
        ),
        (
            r#"{"number": 1, "MARKER"#,
            "it ends too early (line 1, column 21)",
        ),
        ("MARKER", "it is not JSON (line 1, column 1)"),
    ] {
        let answer = Response {
            date: None,
            body: body.as_bytes().to_vec(),
            alone: None,
        };
        let failure = answer
            .parse::<Wanted>()
            .expect_err("it is not what was wanted");
        assert_eq!(failure, Failure::Unreadable(cause.to_owned()), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_pause_between_tries_outlasts_the_run() {
    let busy = Fate {
        fault: Some(Fault::Busy(503, Some(5))),
        ..Fate::default()
    };
    let server = Server::with_faults(Objects::new(Timestamp::UNIX_EPOCH, []), move |_| busy);
    let (_signal, stop) = Stop::manual(Duration::from_secs(12));
    let cluster = Cluster::new(server.client(), stop);
    let begun = Instant::now();
    let failure = cluster.pod_uids("n").await.expect_err("the server is busy");
    assert_eq!(
        failure.code(),
        Some(503),
        "the last answer, not a request without time"
    );
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
}

/// Without the permission to list other Leases, a run goes on as if there were none. A refused read of a
/// listed Lease may hide a sign of life.
#[tokio::test(start_paused = true)]
async fn leases_count_as_none_only_where_they_may_not_be_listed() {
    let leases = async |forbidden: &'static str, is_page| {
        let lease = objects(&yaml("Lease kube-system/apiserver-0: {}"));
        let objects = Objects::new(Timestamp::UNIX_EPOCH, lease);
        let server = Server::with_faults(objects, move |request| Fate {
            fault: request
                .query
                .as_ref()
                .is_some_and(|query| query.contains(forbidden))
                .then_some(Fault::Status(403, is_page, false)),
            ..Fate::default()
        });
        let (_signal, stop) = Stop::manual(Duration::from_mins(8));
        let cluster = Cluster::new(server.client(), stop);
        let leases = cluster.leases_of(&Holders::default()).await;
        leases
            .map(|leases| leases.is_some())
            .map_err(|it| it.code())
    };
    assert_eq!(leases("nothing of it", false).await, Ok(true));
    assert_eq!(leases("includeObject=None", false).await, Ok(false));
    assert_eq!(leases("labelSelector", false).await, Err(Some(403)));
    // The page of a proxy refuses the list, and says nothing about permissions.
    assert_eq!(leases("includeObject=None", true).await, Err(Some(403)));
}

/// A server that sends the same response to every request, and a client of this server.
fn answering(code: u16, body: &'static str) -> Cluster {
    let serve = move |_| async move {
        let mut response = http::Response::new(Body::from(body.as_bytes().to_vec()));
        *response.status_mut() = StatusCode::from_u16(code).expect("a status");
        Ok::<_, Infallible>(response)
    };
    let (_signal, stop) = Stop::manual(Duration::from_mins(8));
    let client = Client::new(tower::service_fn(serve), "default");
    Cluster::new(client, stop)
}

/// Any JSON object would parse, because every field of the raw types may be absent.
#[tokio::test]
async fn a_response_that_is_not_what_was_asked_for_is_refused() {
    let asked = async |body: &'static str| {
        let cluster = answering(200, body);
        let listed = cluster.pod_uids("n").await.map(drop);
        let found = cluster.find::<RawPod>("shop", "a").await.map(drop);
        let rows = cluster.attachment_rows().await.map(drop);
        [listed, found, rows].map(Result::err)
    };
    let unread = |why: &str| Some(Failure::Unreadable(why.to_owned()));
    let another = r#"{"kind": "Pod", "metadata": {"name": "b"}, "items": []}"#;
    let [listed, found, rows] = asked(another).await;
    assert_eq!(listed, unread("it is not a list"));
    assert_eq!(found, unread("it is not the object that was asked for"));
    assert_eq!(rows, unread("the table has no column Name"));
    let table = r#"{"columnDefinitions": [{"name": "Name"}, {"name": "Attacher"}, {"name": "PV"}, {"name": "Node"}],
        "rows": [{"cells": ["csi-1", "csi.example", "pv-1"]}]}"#;
    let [_, _, rows] = asked(table).await;
    assert_eq!(rows, unread("a row of the table lacks a cell"));
}

/// A pod on the node `n` with this many additional bytes.
fn large(name: &str, bytes: usize) -> Value {
    let padding = "x".repeat(bytes);
    let pod = format!("Pod shop/{name}: {{node: 'n', spec: {{padding: {padding}}}}}");
    objects(&yaml(&pod)).remove(0)
}

/// A server with two pods on the node `n`, one on each page, and a client of this server.
fn two_pages() -> (Server<Objects>, Cluster) {
    let pods = objects(&yaml(
        "{Pod shop/a: {node: 'n', phase: null}, Pod shop/b: {node: 'n', phase: null}}",
    ));
    let server = Server::new(Objects::new(Timestamp::UNIX_EPOCH, pods)).page(1);
    let cluster = Cluster::new(server.client(), Stop::manual(Duration::from_mins(8)).1);
    (server, cluster)
}

#[tokio::test(start_paused = true)]
async fn the_first_list_of_a_nodes_pods_may_come_from_the_cache() {
    let (server, cluster) = two_pages();
    let pods = PodsOf::Node("n".to_owned());
    let found = cluster.pods_of(&pods, Vec::<RawPod>::push).await;
    let list = "GET /api/v1/pods?limit=500&fieldSelector=spec.nodeName%3Dn";
    // The token of a continued list already contains a version.
    let pages = ["&resourceVersion=0", "&continue=l0i1"];
    assert_eq!(
        server.lock().requests,
        pages.map(|page| format!("{list}{page}"))
    );
    assert_eq!(found.map(|pods| pods.items.len()), Ok(2));
}

/// The cache ignores the limit, so a list that is too large for one page is not requested from the
/// cache again.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_large_is_given_up_and_read_in_smaller_pages() {
    let (server, cluster) = two_pages();
    let few = MAX_BODY_BYTES / 30;
    let sizes = (0..40).map(|number| if number < 35 { few } else { 10 });
    let large = sizes
        .enumerate()
        .map(|(number, bytes)| large(&format!("pod-{number}"), bytes));
    {
        let mut state = server.lock();
        (state.page, state.cluster.objects) = (usize::MAX, large.collect());
    }
    let pods = PodsOf::Node("n".to_owned());
    let found = cluster.pods_of(&pods, Vec::<RawPod>::push).await;
    let names = found.map(|pods| pods.items.into_iter().map(|pod| pod.metadata.name));
    let expected = (0..40).map(|number| format!("pod-{number}"));
    assert!(names.expect("all are read").eq(expected));
    let requests = server.lock().requests.join("\n");
    let list = "GET /api/v1/pods?limit=";
    let query = "&fieldSelector=spec.nodeName%3Dn";
    expect![[r"
        500&resourceVersion=0
        62
        7
        14&continue=l2i7
        14&continue=l2i21
        14&continue=l2i35"]]
    .assert_eq(&requests.replace(list, "").replace(query, ""));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_large_is_not_read() {
    let (server, cluster) = two_pages();
    server.lock().cluster.objects[0] = large("a", MAX_BODY_BYTES);
    let found = cluster.find::<RawPod>("shop", "a").await.map(drop);
    assert_eq!(found, Err(Failure::TooLarge));
    let of_node = PodsOf::Node("n".to_owned());
    let listed = cluster.pods_of(&of_node, Vec::<RawPod>::push).await;
    assert_eq!(listed.map(drop), Err(Failure::TooLarge));
}

#[tokio::test(start_paused = true)]
async fn only_the_node_that_was_judged_permits_a_write_and_only_while_it_is_down() {
    let selectors = NodeSelectors::default();
    let cluster = |node: &str| {
        let node = objects(&yaml(&format!("Node ds06: {{lease: null, {node}}}")));
        let server = Server::new(Objects::new(Timestamp::UNIX_EPOCH, node));
        let (signal, stop) = Stop::manual(Duration::from_mins(8));
        (signal, Cluster::new(server.client(), stop))
    };
    let (_signal, as_judged) = cluster("");
    let objects = as_judged.node_objects("ds06").await;
    let objects = objects.expect("an answer").expect("a node");
    let judged = objects.into_facts(&selectors).expect("a whole node");
    for (change, expected) in [
        ("", "down"),
        ("metadata: {uid: another}", "node-changed"),
        ("metadata: {name: another}", "node-changed"),
        (
            "metadata: {labels: {kosmos.io/node: 'true'}}",
            "node-changed",
        ),
        ("ready: 'True'", "node-recovered"),
    ] {
        let (_signal, cluster) = cluster(change);
        let proof = cluster.still_down(&judged, &selectors, None).await;
        let is = proof.map_or_else(|outcome| outcome.code().as_str(), |_| "down");
        assert_eq!(is, expected, "{change}");
    }
}

#[tokio::test(start_paused = true)]
async fn neither_the_verifying_list_nor_one_of_many_nodes_comes_from_the_cache() {
    let (server, cluster) = two_pages();
    let uids = cluster.pod_uids("n").await.map(|uids| uids.len());
    let listed = async |pods: PodsOf| {
        let pods = cluster.pods_of(&pods, Vec::<RawPod>::push).await;
        pods.map(|pods| pods.items.len())
    };
    let mut settings = audit();
    settings.all = true;
    let rows = cluster.node_rows(&settings.wanted()).await;
    let rows = rows.map_err(|error| unreadable(error.to_string()));
    let lists = rows.map(|rows| rows.pod_lists.map_or(0, |lists| lists.len()));
    let unplaced = listed(PodsOf::NoNode).await;
    let finished = listed(PodsOf::Finished).await;
    let requests = server.lock().requests.clone();
    let cached = requests
        .into_iter()
        .filter(|sent| sent.contains("resourceVersion"))
        .collect::<Vec<_>>();
    assert_eq!(cached, Vec::<String>::new());
    // Both pods lack a phase, so the query for finished pods selects them.
    assert_eq!(
        [uids, lists, unplaced, finished],
        [Ok(2), Ok(2), Ok(0), Ok(2)]
    );
}

/// An error with a cause.
#[derive(Debug)]
struct Outer<E>(E);

impl<E> fmt::Display for Outer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the request failed")
    }
}

impl<E: Error + 'static> Error for Outer<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn the_root_cause_is_reported_but_not_what_a_credential_plugin_prints() {
    let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
    assert_eq!(root(&Outer(Outer(refused))), "connection refused");
    let plugin = AuthError::AuthExec("MARKER".to_owned());
    let says = "the credentials could not be renewed; log in again";
    assert_eq!(root(&plugin), says);
    assert_eq!(root(&Outer(kube::Error::Auth(plugin))), says);
}

/// The guard's message is proof with any status code, and nothing else is. A refusal that may pass
/// is distinguished from one that will not pass.
#[test]
fn only_the_message_of_the_guard_is_proof() {
    let judged = |code, message: &str| {
        let kind = if message.starts_with("failed") {
            StatusKind::Webhook
        } else {
            StatusKind::Other
        };
        guard::judge(&said(code, kind, message))
    };
    let policy =
        "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: ";
    for code in [403, 422] {
        assert_eq!(judged(code, &format!("{policy}{REFUSAL}")), Ok(()));
    }
    for (code, message) in [
        (403, format!("{policy}no")),
        (403, format!("{policy}{REFUSAL}, or not")),
        (403, format!("pods \"{REFUSAL}\" is forbidden")),
        (
            422,
            format!("{policy}expression '{REFUSAL}' resulted in error: no such key"),
        ),
        (400, REFUSAL.to_owned()),
        (
            500,
            format!("failed calling webhook \"denied request: {REFUSAL}\": EOF"),
        ),
        (403, String::new()),
    ] {
        assert!(
            matches!(judged(code, &message), Err(guard::NoProof::Never(_))),
            "{code} {message}"
        );
    }
    for (code, message) in [
        (403, "not yet ready to handle request"),
        (409, ""),
        (429, ""),
        (500, ""),
        (503, ""),
    ] {
        assert!(
            matches!(judged(code, message), Err(guard::NoProof::NotYet(_))),
            "{code} {message}"
        );
    }
    assert!(matches!(
        guard::judge(&Failure::Transport(REFUSAL.to_owned())),
        Err(guard::NoProof::NotYet(_))
    ));
}

/// If a run requires the guard and cannot read its own pod, the run ends. Its error says what is
/// missing only if the response tells.
#[tokio::test(start_paused = true)]
async fn an_own_pod_that_cannot_be_read_is_never_a_proof_whatever_the_cause() {
    const ABSENT: &str =
        r#"{"kind": "Status", "reason": "NotFound", "message": "pods \"b\" not found"}"#;
    let mut causes = Vec::new();
    for (code, body) in [
        (401, ""),
        (403, ""),
        (404, ABSENT),
        (404, "a proxy's page"),
        (500, ""),
        (200, "cut"),
        (200, "{}"),
    ] {
        let cluster = answering(code, body);
        let proof = cluster.ask("/api/v1/namespaces/a/pods/b").await;
        let Err(guard::NoProof::Never(why)) = proof else {
            panic!("{code} {body}: {proof:?}");
        };
        causes.push(why.replace("its own pod could not be read: ", ""));
    }
    expect![[r#"
        the API server responded with 401: Unauthorized
        the API server responded with 403: Forbidden; it needs permission to get pods
        the API server responded with 404: pods "b" not found; POD_NAMESPACE and POD_NAME do not name the pod that pod-reaper runs in, the only pod on which it checks the guard. cronjob/base sets both. Outside a cluster, omit --require-guard
        the API server responded with 404: Not Found
        the API server responded with 500: Internal Server Error
        the response could not be read: it is not JSON (line 1, column 1)
        the response could not be read: it has no UID or no resource version"#]]
    .assert_eq(&causes.join("\n"));
}

/// A server with ds06, and the proof that it is down.
async fn proof_of_ds06() -> (Server<Objects>, Cluster, StillDown) {
    let objects = Objects::new(Timestamp::UNIX_EPOCH, objects(&yaml("Node ds06: {}")));
    let server = Server::new(objects);
    let cluster = Cluster::new(server.client(), Stop::manual(Duration::from_mins(8)).1);
    let selectors = NodeSelectors::default();
    let read = cluster.node_objects("ds06").await;
    let judged = read.unwrap().unwrap().into_facts(&selectors).unwrap();
    let proof = cluster.still_down(&judged, &selectors, None).await.unwrap();
    (server, cluster, proof)
}

fn is_not_sent<T>(written: &Result<T, Failure>) -> bool {
    matches!(written, Err(Failure::NotSent(_)))
}

#[tokio::test(start_paused = true)]
async fn a_proof_permits_no_write_to_a_pod_of_another_node() {
    let (server, cluster, proof) = proof_of_ds06().await;
    let settings = audit();
    let state = objects(&yaml(
        "{Node ds06: {}, Namespace shop: {}, Pod shop/a-0: {}}",
    ));
    let pod = judged(&settings, &state).plan.pods.remove(0).pod;
    for (node, is_sent) in [(Some("ds06"), true), (Some("ds05"), false), (None, false)] {
        let mut pod = pod.clone();
        pod.node = node.map(str::to_owned);
        let delete = cluster.delete_pod(&pod, &proof).await;
        let patch = cluster.fail_job_pod(&pod, &proof).await;
        assert_eq!(is_not_sent(&delete), !is_sent, "{node:?}: {delete:?}");
        assert_eq!(is_not_sent(&patch), !is_sent, "{node:?}: {patch:?}");
    }
    let requests = server.lock().requests.clone();
    let writes = requests.iter().filter(|sent| !sent.starts_with("GET"));
    assert_eq!(writes.count(), 2, "{requests:?}");
}

/// No row of any page is older than the first page.
#[tokio::test(start_paused = true)]
async fn rows_have_the_time_of_their_first_page() {
    let nodes =
        "{Node ds04: {ready: 'True'}, Node ds05: {ready: 'True'}, Node ds06: {ready: 'True'}}";
    let nodes = objects(&yaml(nodes));
    let server = Server::new(Objects::new(Timestamp::UNIX_EPOCH, nodes)).page(1);
    let cluster = Cluster::new(server.client(), Stop::manual(Duration::from_mins(8)).1);
    // Each page is read a minute after the previous page.
    let add = |count: &mut usize, [_]: [&str; 1]| {
        *count += 1;
        server.lock().cluster.now += jiff::SignedDuration::from_mins(1);
    };
    let rows = cluster.rows::<RawNode, _, 1>("", ["Name"], add).await;
    assert_eq!(rows, Ok((Some(Timestamp::UNIX_EPOCH), 3)));
}

/// A list whose next page has expired begins again, without what it had.
#[tokio::test(start_paused = true)]
async fn a_list_that_begins_again_counts_nothing_twice() {
    let nodes = objects(&yaml("{Node ds04: {}, Node ds05: {}, Node ds06: {}}"));
    let mut asked = 0;
    let fate = move |_: &Request| {
        asked += 1;
        Fate {
            fault: (asked == 2).then_some(Fault::Expired),
            ..Fate::default()
        }
    };
    let server = Server::with_faults(Objects::new(Timestamp::UNIX_EPOCH, nodes), fate).page(1);
    let cluster = Cluster::new(server.client(), Stop::manual(Duration::from_mins(8)).1);
    let add = |count: &mut usize, [_]: [&str; 1]| *count += 1;
    let rows = cluster.rows::<RawNode, _, 1>("", ["Name"], add).await;
    assert_eq!(rows, Ok((Some(Timestamp::UNIX_EPOCH), 3)));
}
