//! Tests of reading responses and judging failures, without a real server.

use std::{cell::Cell, convert::Infallible, time::Duration};

use pod_reaper_test_support::{
    samples::{NOW, objects, with, yaml},
    simulated::{Fate, Fault, Objects, Request, Server},
};

use expect_test::expect;
use http::StatusCode;
use jiff::Timestamp;
use kube::client::{AuthError, Body};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    cli::Cli,
    facts::{NamespaceFacts, NodeFacts, PodsOf, Storage},
    kubernetes::{Holders, NodeRow, RawPod},
    outcome::Outcome,
    settings::Settings,
};

use super::{failure::status_of, request::Response, *};

fn said(code: u16, kind: StatusKind, message: &str) -> Failure {
    Failure::Status {
        code,
        message: message.into(),
        kind,
        retry_after: None,
    }
}

#[test]
fn the_message_is_the_one_of_a_status_object_and_nothing_else() {
    let said = |body: &str| status_of(StatusCode::BAD_GATEWAY, body.as_bytes()).1;
    let status = r#"{"kind":"Status","message":"pods is forbidden","details":{"secret":"MARKER"}}"#;
    assert_eq!(said(status), "pods is forbidden".into());
    for body in [
        "",
        "<html>MARKER</html>",
        r#"{"kind":"Secret","message":"MARKER"}"#,
        r#"{"message":"MARKER"}"#,
        r#"{"kind":"Status","reason":"MARKER"}"#,
        r#"{"kind":"Status","message":["MARKER"]}"#,
        r#"{"kind":"Status","message":"MARKER""#,
    ] {
        assert_eq!(said(body), "Bad Gateway".into(), "{body}");
    }
}

/// A write that was not clearly refused may have taken effect.
#[test]
fn each_failure_is_retried_where_it_passes_and_says_whether_a_write_may_have_taken_effect() {
    let status = |code| said(code, StatusKind::Other, "");
    let (passes, stays, maybe, never) = (true, false, true, false);
    for (failure, passes, maybe) in [
        (status(301), stays, never),
        (status(403), stays, never),
        (status(404), stays, never),
        (status(409), stays, never),
        (status(422), stays, never),
        (status(429), passes, never),
        (status(500), passes, maybe),
        (status(501), stays, maybe),
        (status(503), passes, maybe),
        (Failure::Timeout(Duration::ZERO), passes, maybe),
        (Failure::Transport(String::new()), passes, maybe),
        (Failure::Unreadable(String::new()), stays, maybe),
        // Admission comes before the write, so nothing was written.
        (said(500, StatusKind::Webhook, ""), stays, never),
        // A write is sent again only after another reading of its node.
        (Failure::NotSent(""), passes, never),
    ] {
        let doubling = [200, 400, 800].map(Duration::from_millis).map(Some);
        let pauses = [1, 2, 3].map(|tried| failure.pause(tried));
        let expected = if passes { doubling } else { [None; 3] };
        assert_eq!(pauses, expected, "{failure:?}");
        assert_eq!(failure.may_have_taken_effect(), maybe, "{failure:?}");
    }
    for (asked, pause) in [(0, Some(200)), (5, Some(5_000)), (6, None)] {
        let busy = Failure::Status {
            code: 429,
            message: String::new().into(),
            kind: StatusKind::Other,
            retry_after: Some(Duration::from_secs(asked)),
        };
        assert_eq!(busy.pause(1), pause.map(Duration::from_millis));
    }
}

#[test]
fn what_a_parser_read_is_never_repeated() {
    #[derive(Debug, Deserialize)]
    struct Wanted {
        #[expect(dead_code, reason = "only its type matters")]
        number: u8,
    }
    for body in [
        r#"{"number": "MARKER"}"#,
        r#"{"MARKER": 1}"#,
        r#"{"number": 1, "MARKER"#,
        "MARKER",
    ] {
        let answer = Response {
            date: None,
            body: body.as_bytes().to_vec(),
            alone: None,
        };
        let failure = answer.parse::<Wanted>().expect_err(body).to_string();
        assert!(!failure.contains("MARKER"), "{failure}");
    }
}

#[test]
fn the_root_cause_is_reported_but_not_what_a_credential_plugin_prints() {
    let plugin = || AuthError::AuthExec("MARKER".to_owned());
    let says = "the credentials could not be renewed; log in again";
    assert_eq!(root(&plugin()), says);
    assert_eq!(root(&kube::Error::Auth(plugin())), says);
}

/// A server that sends this response to every request, and a client of this server.
fn answering(body: &str) -> Cluster {
    let body = body.as_bytes().to_vec();
    let serve = move |_| {
        let body = Body::from(body.clone());
        async { Ok::<_, Infallible>(http::Response::new(body)) }
    };
    let (_signal, stop) = Stop::manual(Duration::from_mins(8));
    Cluster::new(Client::new(tower::service_fn(serve), "default"), stop)
}

/// Any JSON object would parse, because every field of the raw types may be absent.
#[tokio::test]
async fn a_response_that_is_not_what_was_asked_for_is_refused() {
    let another = r#"{"kind": "Pod", "metadata": {"name": "b"}, "items": []}"#;
    let row = r#"{"columnDefinitions": [{"name": "Name"}, {"name": "Status"}, {"name": "Roles"}],
        "rows": [{"cells": ["ds06", "Ready"]}]}"#;
    let rows = async |body| {
        let rows = answering(body);
        rows.rows(Vec::<NodeRow>::push).await.map(drop)
    };
    let refused = [
        answering(another).pod_uids("n").await.map(drop),
        answering(another)
            .find::<RawPod>("shop", "a")
            .await
            .map(drop),
        rows(another).await,
        rows(row).await,
    ];
    let causes = refused.map(|result| result.expect_err("it is refused").to_string());
    expect![[r#"
        [
            "the response could not be read: it is not a list",
            "the response could not be read: it is not the object that was asked for",
            "the response could not be read: the table has no column Name",
            "the response could not be read: a row of the table lacks a cell",
        ]
    "#]]
    .assert_debug_eq(&causes);
}

/// A server with these objects, and a client of this server.
fn serving(
    described: &str,
    fate: impl FnMut(&Request) -> Fate + Send + 'static,
) -> (Server<Objects>, Cluster) {
    let objects = Objects::new(Timestamp::UNIX_EPOCH, objects(&yaml(described)));
    let server = Server::with_faults(objects, fate);
    let cluster = Cluster::new(server.client(), Stop::manual(Duration::from_mins(8)).1);
    (server, cluster)
}

/// A pod on the node `n` with this many additional bytes.
fn large(name: &str, bytes: usize) -> Value {
    let padding = "x".repeat(bytes);
    let pod = format!("Pod shop/{name}: {{node: 'n', spec: {{padding: {padding}}}}}");
    objects(&yaml(&pod)).remove(0)
}

fn keep_pod(all: &mut Vec<RawPod>, pod: &RawPod) {
    all.push(pod.clone());
}

/// The cache ignores the limit, so a list that is too large for one page is not requested from the
/// cache again.
#[tokio::test(start_paused = true)]
async fn a_list_that_is_too_large_is_given_up_and_read_in_smaller_pages() {
    let (server, cluster) = serving("{}", |_| Fate::default());
    let few = MAX_BODY_BYTES / 30;
    let sizes = (0..40).map(|number| if number < 35 { few } else { 10 });
    let pods = sizes
        .enumerate()
        .map(|(number, bytes)| large(&format!("pod-{number}"), bytes));
    server.lock().cluster.objects = pods.collect();
    let of_node = PodsOf::Node("n".to_owned());
    let found = cluster.each(Of::Pods(&of_node), keep_pod).await;
    assert_eq!(found.map(|pods| pods.items.len()), Ok(40));
    let requests = server.lock().requests.join("\n");
    expect![[r"
        500&resourceVersion=0
        62
        7
        14&continue=l2i7
        14&continue=l2i21
        14&continue=l2i35"]]
    .assert_eq(
        &requests
            .replace("GET /api/v1/pods?limit=", "")
            .replace("&fieldSelector=spec.nodeName%3Dn", ""),
    );
}

/// The cache sends a list in one piece, which takes long if a tenant has made it large.
#[tokio::test(start_paused = true)]
async fn a_list_that_the_cache_does_not_send_in_time_is_read_in_pages() {
    let (server, cluster) = serving("Pod shop/a: {node: 'n'}", |request| {
        let is_cached = request
            .query
            .as_deref()
            .is_some_and(|query| query.ends_with("resourceVersion=0"));
        let fault = is_cached.then_some(Fault::Hangs(false));
        Fate {
            fault,
            ..Fate::default()
        }
    });
    let of_node = PodsOf::Node("n".to_owned());
    let found = cluster.each(Of::Pods(&of_node), keep_pod).await;
    assert_eq!(found.map(|pods| pods.items.len()), Ok(1));
    // Four tries, and one page.
    assert_eq!(server.lock().requests.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_too_large_is_not_read() {
    let (server, cluster) = serving("{}", |_| Fate::default());
    server.lock().cluster.objects = vec![large("a", MAX_BODY_BYTES)];
    let found = cluster.find::<RawPod>("shop", "a").await.map(drop);
    assert_eq!(found, Err(Failure::TooLarge));
    let of_node = PodsOf::Node("n".to_owned());
    let listed = cluster.each(Of::Pods(&of_node), keep_pod).await;
    assert_eq!(listed.map(drop), Err(Failure::TooLarge));
}

/// The server says after each page that there is another one.
#[tokio::test(start_paused = true)]
async fn a_list_without_an_end_ends() {
    let list = r#"{"kind": "PodList", "metadata": {"continue": "more"}, "items": []}"#;
    let of_node = PodsOf::Node("n".to_owned());
    let listed = answering(list).each(Of::Pods(&of_node), keep_pod).await;
    let failure = listed.map(drop).expect_err("it is given up");
    assert_eq!(
        failure.to_string(),
        "the response could not be read: the list has no end"
    );
    let rows = vec![json!({"cells": ["n", "Ready", "<none>"]}); 20_000];
    let columns = ["Name", "Status", "Roles"].map(|name| json!({ "name": name }));
    let table =
        json!({"columnDefinitions": columns, "rows": rows, "metadata": {"continue": "more"}});
    let (cluster, count) = (answering(&table.to_string()), Cell::new(0));
    let read = cluster.rows(|(): &mut (), _: NodeRow| count.set(count.get() + 1));
    assert_eq!(read.await.map(drop), Err(failure));
    assert_eq!(count.get(), 1_020_000);
}

/// No row of any page is older than the first page. A list whose next page has expired begins again, without what it had.
#[tokio::test(start_paused = true)]
async fn rows_have_the_time_of_their_first_page_and_none_counts_twice() {
    for expires in [false, true] {
        let mut asked = 0;
        let fate = move |_: &Request| {
            asked += 1;
            Fate {
                fault: (expires && asked == 2).then_some(Fault::Expired),
                ..Fate::default()
            }
        };
        let (server, cluster) = serving("{Node a: {}, Node b: {}, Node c: {}}", fate);
        let server = server.page(1);
        let add = |count: &mut usize, _: NodeRow| {
            *count += 1;
            // Each page is read a minute after the previous page.
            if !expires {
                server.lock().cluster.now += jiff::SignedDuration::from_mins(1);
            }
        };
        let rows = cluster.rows(add).await;
        assert_eq!(rows, Ok((Some(Timestamp::UNIX_EPOCH), 3)));
    }
}

/// Only a refusal of the first request says that the account may not list: Leases are then treated as none. An account that was sent a page may
/// list, so a later refusal leaves the list unread, also if the list began again.
#[tokio::test(start_paused = true)]
async fn a_refusal_after_a_page_is_no_missing_permission() {
    let refused = Some(Fault::Status(403, false, false));
    for (faults, may_not_list) in [
        ([refused, None, None], true),
        ([None, refused, None], false),
        ([None, Some(Fault::Expired), refused], false),
    ] {
        let mut left = faults.into_iter();
        let fate = move |_: &Request| Fate {
            fault: left.next().flatten(),
            ..Fate::default()
        };
        let leases = "{Lease a/a: {holder: ds06}, Lease b/b: {holder: ds06}}";
        let (server, cluster) = serving(leases, fate);
        let _server = server.page(1);
        let read = cluster.leases_of(&Holders::default()).await;
        let failure = read.expect_err("it is refused");
        assert_eq!(failure.code(), Some(403));
        assert_eq!(
            failure.is(StatusKind::MayNotList),
            may_not_list,
            "{faults:?}"
        );
    }
}

/// The guard's message is proof with any status code, and nothing else is. A refusal that may pass
/// is distinguished from one that will not pass.
#[test]
fn only_the_message_of_the_guard_is_proof() {
    let policy =
        "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'a' with binding 'b' denied request: ";
    let by_policy = format!("{policy}{REFUSAL}");
    let failed = format!("expression '{REFUSAL}' resulted in error: no such key");
    for (code, message, expected) in [
        (403, by_policy.as_str(), "proof"),
        (422, &by_policy, "proof"),
        (403, &format!("{by_policy}, or not"), "never"),
        (
            403,
            &format!("admission webhook \"x\" denied the request: {by_policy}"),
            "never",
        ),
        (
            403,
            &format!("admission webhook \"x\" denied request: {REFUSAL}"),
            "never",
        ),
        (403, &by_policy.replace("\"x\"", "\"y\""), "never"),
        (403, &by_policy.replace("'b'", "'b' or 'c'"), "never"),
        (403, &format!("pods \"{REFUSAL}\" is forbidden"), "never"),
        (422, &format!("{policy}{failed}"), "never"),
        (400, REFUSAL, "never"),
        (403, "", "never"),
        (403, "not yet ready to handle request", "not yet"),
        (409, "", "not yet"),
        (429, "", "not yet"),
        (503, "", "not yet"),
    ] {
        let judged = match guard::judge(&said(code, StatusKind::Other, message), "x") {
            Ok(()) => "proof",
            Err(guard::NoProof::Never(_)) => "never",
            Err(guard::NoProof::NotYet(_)) => "not yet",
        };
        assert_eq!(judged, expected, "{code} {message}");
    }
    let webhook = format!("failed calling webhook \"denied request: {REFUSAL}\": EOF");
    for failure in [
        said(500, StatusKind::Webhook, &webhook),
        Failure::Transport(REFUSAL.to_owned()),
    ] {
        assert!(guard::judge(&failure, "x").is_err(), "{failure:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_permits_no_write_to_a_pod_of_another_node_and_a_leaf_node_none_at_all() {
    let (server, cluster) = serving("{Node ds06: {}}", |_| Fate::default());
    server.lock().cluster.now = NOW.parse().expect("a moment");
    let cli = Cli::try_from_args(["pod-reaper".into()]).expect("options");
    let policy = Settings::from(cli).policy;
    let read = cluster.node("ds06").await;
    let mut judged = read.unwrap().unwrap().into_facts(&policy).unwrap();
    judged.lists_leases = Ok(true);
    let again = cluster.read_node_again(&judged, &policy, None);
    let again = again.await.unwrap();
    let storage = Storage {
        claims: Ok(Vec::new()),
        set: None,
    };
    for (node, writes) in [("ds06", 2), ("ds05", 0), ("null", 0)] {
        let pod = objects(&yaml(&format!("Pod shop/a-0: {{node: {node}}}"))).remove(0);
        let mut pod = serde_json::from_value::<RawPod>(pod).unwrap().facts;
        pod.in_namespace = Ok(NamespaceFacts::default());
        let before = server.lock().requests.len();
        let permit = again.permit(&policy, (&pod, Some(&storage)), [], false);
        if let Ok(permit) = permit {
            let _ = cluster.delete_pod(&permit, false).await;
            let _ = cluster.fail_job_pod(&permit).await;
        }
        assert_eq!(server.lock().requests.len() - before, writes, "{node}");
    }
    // The pods of a fenced node pass the limits, so it has to be fenced still.
    let read_again = async |annotations: Value, labels: Value, judged: &NodeFacts| {
        let metadata = json!({"annotations": annotations, "labels": labels});
        let node = with(
            server.lock().cluster.objects[1].clone(),
            json!({"metadata": metadata}),
        );
        server.lock().cluster.objects[1] = node;
        cluster.read_node_again(judged, &policy, None).await
    };
    let fenced = json!({"fencing/state": "fenced"});
    assert!(read_again(fenced, json!({}), &judged).await.is_ok());
    let read = cluster.node("ds06").await;
    let mut as_fenced = read.unwrap().unwrap().into_facts(&policy).unwrap();
    as_fenced.lists_leases.clone_from(&judged.lists_leases);
    let fencing = json!({"fencing/state": "fencing"});
    for again in [
        read_again(fencing, json!({}), &as_fenced).await,
        read_again(json!({}), json!({"kosmos.io/node": "true"}), &judged).await,
    ] {
        assert!(matches!(again, Err(Outcome::NodeChanged(_))), "{again:?}");
    }
}
