//! What the `guard` component still allows the account besides deleting pods: requesting tokens and writing Events. The module
//! `guard` tests the pods, `manifests` the account's permissions.

use crate::{
    prelude::*,
    support::{installed::install, samples::with},
};

const HOUR: &str = "tokens are good for an hour at most";
const BOUND: &str = "tokens are bound to a pod";
const YEAR: u64 = 365 * 24 * 3600;

fn says((_, answer): &(u16, Value)) -> &str {
    answer["message"].as_str().unwrap_or_default()
}

/// The requests come from a node that runs, or ran, the account's pod, and from an administrator.
#[test]
fn its_tokens_are_short_and_end_with_their_pod() {
    let cluster = one_dead();
    install(&cluster, DEFAULT);
    own_pod(&cluster, "pod-reaper");
    let own = pod_path("pod-reaper", OWN);
    let container = &cluster.get(&own)["spec"]["containers"][0];
    let token = yaml(
        "{name: token, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount', readOnly: true}",
    );
    assert!(
        container["volumeMounts"]
            .as_array()
            .is_some_and(|mounts| mounts.contains(&token)),
        "{container}"
    );
    let other = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: other}}";
    cluster.create("/api/v1/namespaces/pod-reaper/serviceaccounts", yaml(other));

    let bound =
        json!({"apiVersion": "v1", "kind": "Pod", "name": OWN, "uid": uid(&cluster.get(&own))});
    let to_a_secret = json!({"apiVersion": "v1", "kind": "Secret", "name": OWN});
    let node = ("system:node:ready-1", "system:nodes");
    let admin = ("admin", "system:masters");
    let ask = |(user, group): (&str, &str), account: &str, seconds: u64, bound: &Value| {
        let spec = json!({"expirationSeconds": seconds, "boundObjectRef": bound});
        let request =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let path = format!("/api/v1/namespaces/pod-reaper/serviceaccounts/{account}/token");
        as_member(&cluster, user, &[group], ("POST", &path), &request)
    };
    until("the policy is in force", || {
        says(&ask(admin, "pod-reaper", 600, &Value::Null)).contains(BOUND)
    });
    for (who, seconds, bound, refusal) in [
        (node, YEAR, &bound, HOUR),
        // The API server turns this duration into a year.
        (node, 3_607, &bound, HOUR),
        (node, 3_601, &bound, HOUR),
        (admin, YEAR, &bound, HOUR),
        (admin, YEAR, &Value::Null, HOUR),
        (admin, 3_600, &Value::Null, BOUND),
        (admin, 600, &to_a_secret, BOUND),
    ] {
        let answer = ask(who, "pod-reaper", seconds, bound);
        let what = format!("{who:?}, {seconds} s, {bound}: {}", answer.1);
        assert!(answer.0 == 403 && says(&answer).contains(refusal), "{what}");
    }
    // The policy does not restrict the tokens of other accounts.
    for seconds in [YEAR, 3_607] {
        let answer = ask(admin, "other", seconds, &Value::Null);
        assert_eq!(answer.0, 201, "{}", answer.1);
    }
    let (code, answer) = ask(node, "pod-reaper", 600, &bound);
    assert_eq!(code, 201, "{answer}");
    let token = str_of(&answer["status"]["token"]);
    let may_read = || {
        let answer = cluster.kubectl(["--token", token, "get", "nodes"]);
        let said = shown(&answer);
        assert!(
            answer.status.success() || said.contains("Unauthorized"),
            "{said}"
        );
        answer.status.success()
    };
    assert!(may_read());
    cluster.delete(&own, yaml("{gracePeriodSeconds: 0}"));
    until("the token ends with its pod", || !may_read());
}

/// Even with every permission on Events, a stolen token can only create small Events in the program's name.
#[test]
fn its_events_are_small_and_its_own() {
    const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/apps/events";
    const CORE: &str = "/api/v1/namespaces/apps/events";
    let cluster = fresh();
    namespace(&cluster, "apps");
    install(&cluster, DEFAULT);
    let rules = "[{apiGroups: ['', events.k8s.io], resources: [events], verbs: ['*']}]";
    grant(&cluster, "stolen-events", ACCOUNT, rules);
    let event = yaml(
        "
        apiVersion: events.k8s.io/v1
        kind: Event
        metadata: {namespace: apps, generateName: pod-reaper-}
        eventTime: '2026-01-31T03:00:00.000000Z'
        type: Normal
        reason: Reaped
        action: Deleted
        regarding: {apiVersion: v1, kind: Pod, namespace: apps, name: stuck, uid: '1'}
        related: {apiVersion: v1, kind: Node, name: dead, uid: '2'}
        note: deleted
        reportingController: pod-reaper
        reportingInstance: pod-reaper-1
        ",
    );
    // This is the form that programs older than events.k8s.io write. The API server validates less of it.
    let core = yaml(
        "
        apiVersion: v1
        kind: Event
        metadata: {namespace: apps, generateName: pod-reaper-}
        involvedObject: {apiVersion: v1, kind: Pod, namespace: apps, name: stuck, uid: '1'}
        type: Normal
        reason: Reaped
        reportingComponent: pod-reaper
        ",
    );
    let long = "x".repeat(100_000);
    let fields = (0..5_000).map(|at| (format!("f:key-{at}"), json!({})));
    let fields = Value::Object(fields.collect());
    // One attack uses the program's own name as the manager. The API server also adds an entry of its own under that name.
    let owned = |manager: &str, fields: Value| {
        let entry = json!({"manager": manager, "operation": "Update", "apiVersion": "events.k8s.io/v1",
            "time": "2026-01-31T03:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields});
        json!({"metadata": {"managedFields": [entry]}})
    };
    let in_labels = json!({"f:metadata": {"f:labels": fields}});
    let (own, size, only, managed) = (
        "only its own",
        "4 kB at most",
        "no labels",
        "no other managedFields",
    );
    let attacks = [
        (EVENTS, yaml("{reportingController: kubelet}"), own),
        (CORE, yaml("{reportingComponent: kubelet}"), own),
        (EVENTS, json!({"regarding": {"name": long}}), size),
        (EVENTS, json!({"related": {"fieldPath": long}}), size),
        (CORE, json!({"message": long}), size),
        (CORE, json!({"source": {"component": long}}), size),
        (
            EVENTS,
            json!({"metadata": {"annotations": {"a": long}}}),
            only,
        ),
        (EVENTS, yaml("{metadata: {labels: {a: b}}}"), only),
        (
            EVENTS,
            yaml("{metadata: {finalizers: [example.org/a]}}"),
            only,
        ),
        (EVENTS, owned("another", in_labels.clone()), managed),
        (EVENTS, owned("unknown", in_labels), managed),
        (
            EVENTS,
            owned("unknown", json!({format!("f:{long}"): {}})),
            managed,
        ),
    ];
    let create = |path: &str, more: &Value| {
        let event = if path == CORE { &core } else { &event };
        as_user(
            ACCOUNT,
            &cluster,
            "POST",
            path,
            &with(event.clone(), more.clone()),
        )
    };
    until("rights and policy are in force", || {
        create(EVENTS, &json!({})).0 == 201 && create(EVENTS, &attacks[0].1).0 == 403
    });
    for (path, more, refusal) in &attacks {
        let answer = create(path, more);
        let what = format!("{path}, {refusal}: {}", says(&answer));
        assert!(answer.0 == 403 && says(&answer).contains(refusal), "{what}");
    }
    // The account may not change an Event either. Other accounts may write any Event.
    let written = cluster.get(EVENTS)["items"][0]["metadata"]["name"].clone();
    let path = format!("{EVENTS}/{}", written.as_str().expect("a name"));
    let answer = as_user(
        ACCOUNT,
        &cluster,
        "PATCH",
        &path,
        &yaml("{metadata: {labels: {a: b}}}"),
    );
    assert!(answer.0 == 403 && says(&answer).contains(own), "{answer:?}");
    grant(&cluster, "another", "another", rules);
    until("another may", || {
        as_user("another", &cluster, "POST", EVENTS, &event).0 == 201
    });
    let theirs = with(event.clone(), attacks[6].1.clone());
    assert_eq!(as_user("another", &cluster, "POST", EVENTS, &theirs).0, 201);
}
