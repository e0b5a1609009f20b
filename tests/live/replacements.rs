//! The state of the replacements, with the real controllers and the real scheduler.

use crate::{case::Live, prelude::*};

/// Workloads of ds03 whose replacements do not start, each for another cause.
const HELD_UP: &str = r#"
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: held-up}}
- {apiVersion: v1, kind: Namespace, metadata: {name: unsealed}}
- {apiVersion: v1, kind: Namespace, metadata: {name: small}}
- {apiVersion: v1, kind: ResourceQuota, metadata: {name: small, namespace: small}, spec: {hard: {pods: "1"}}}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: no-room, namespace: held-up}
  spec:
    serviceName: no-room
    selector: {matchLabels: {app: no-room}}
    template:
      metadata: {labels: {app: no-room}}
      spec: &pod
        terminationGracePeriodSeconds: 2
        tolerations:
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        nodeSelector: {kubernetes.io/hostname: ds03}
        containers:
        - {name: main, image: pretended}
- apiVersion: v1
  kind: Pod
  metadata: {name: bare, namespace: held-up}
  spec: *pod
- apiVersion: batch/v1
  kind: Job
  metadata: {name: at-its-limit, namespace: held-up}
  spec:
    backoffLimit: 0
    template:
      spec:
        <<: *pod
        restartPolicy: Never
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: sealed, namespace: held-up}
  spec:
    serviceName: sealed
    selector: {matchLabels: {app: sealed}}
    template:
      metadata: {labels: {app: sealed}}
      spec: &prefers
        terminationGracePeriodSeconds: 2
        tolerations:
        - {key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 1}
        affinity:
          nodeAffinity:
            preferredDuringSchedulingIgnoredDuringExecution:
            - weight: 100
              preference:
                matchExpressions:
                - {key: kubernetes.io/hostname, operator: In, values: [ds03]}
        readinessGates: [{conditionType: example.org/unsealed}]
        containers:
        - {name: main, image: pretended}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: no-image, namespace: held-up}
  spec:
    serviceName: no-image
    selector: {matchLabels: {app: no-image}}
    template:
      metadata: {labels: {app: no-image}}
      spec:
        <<: *prefers
        readinessGates: []
        containers:
        - {name: main, image: "example.org/nowhere:1", imagePullPolicy: Never}
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: unsealed, namespace: unsealed}
  spec:
    serviceName: unsealed
    selector: {matchLabels: {app: unsealed}}
    template:
      metadata: {labels: {app: unsealed}}
      spec: *prefers
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: quota, namespace: small}
  spec:
    serviceName: quota
    selector: {matchLabels: {app: quota}}
    template:
      metadata: {labels: {app: quota}}
      spec:
        <<: *prefers
        readinessGates: []
- apiVersion: apps/v1
  kind: StatefulSet
  metadata: {name: zoned, namespace: held-up}
  spec:
    serviceName: zoned
    selector: {matchLabels: {app: zoned}}
    template:
      metadata: {labels: {app: zoned}}
      spec:
        <<: *prefers
        readinessGates: []
        volumes: [{name: data, persistentVolumeClaim: {claimName: zoned}}]
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata: {name: zoned, namespace: held-up}
  spec: {storageClassName: "", volumeName: zoned, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
- apiVersion: v1
  kind: PersistentVolume
  metadata: {name: zoned}
  spec:
    capacity: {storage: 1Gi}
    accessModes: [ReadWriteOnce]
    persistentVolumeReclaimPolicy: Retain
    nfs: {server: 192.0.2.1, path: /}
    nodeAffinity:
      required:
        nodeSelectorTerms:
        - matchExpressions:
          - {key: topology.kubernetes.io/zone, operator: In, values: [z3]}
"#;

/// The time from when a pod runs until it is Ready.
const UNSEALED_AFTER: Duration = Duration::from_secs(4);

#[test]
fn the_replacements_are_told_with_what_holds_them_up() {
    let case = Case::start();
    let zone = "topology.kubernetes.io/zone=z3";
    assert!(
        case.kubectl(["label", "nodes", FAILING, zone])
            .status
            .success()
    );
    // The scheduler may ignore what the workloads prefer, because the node already has many pods.
    let others = SIX
        .into_iter()
        .filter(|node| *node != FAILING)
        .collect_vec();
    assert!(
        case.kubectl([&["cordon"][..], &others].concat())
            .status
            .success()
    );
    case.apply(HELD_UP);
    case.until_true(
        "all of them run on ds03, except the one without an image",
        || {
            let here = |name: &str| ["held-up", "unsealed", "small"].contains(&name);
            let pods = case
                .pods_on(FAILING)
                .into_iter()
                .filter(|pod| here(&pod.namespace));
            let (running, others) = pods.partition::<Vec<_>, _>(Seen::is_running);
            running.len() == 7 && others.len() == 1
        },
    );
    assert!(
        case.kubectl([&["uncordon"][..], &others].concat())
            .status
            .success()
    );
    let evicted = case.fails(FAILING);
    let quota = r#"{"spec":{"hard":{"pods":"0"}}}"#;
    let patched = case.kubectl([
        "patch",
        "resourcequota",
        "small",
        "-n",
        "small",
        "--type=merge",
        "-p",
        quota,
    ]);
    assert!(patched.status.success());

    // While the run waits, a user unseals one pod.
    let live: Live = *case;
    let old = evicted
        .iter()
        .find(|pod| pod.namespace == "unsealed")
        .expect("it is evicted")
        .uid
        .clone();
    let unsealing = thread::spawn(move || {
        live.until("the sealed one runs elsewhere", || {
            let mut pods = live.pods().into_iter();
            pods.find(|pod| pod.namespace == "unsealed" && pod.uid != old && pod.is_running())
        });
        thread::sleep(UNSEALED_AFTER);
        let unsealed =
            r#"{"status":{"conditions":[{"type":"example.org/unsealed","status":"True"}]}}"#;
        let patch = [
            "patch",
            "pod",
            "unsealed-0",
            "-n",
            "unsealed",
            "--subresource=status",
            "-p",
            unsealed,
        ];
        assert!(live.kubectl(patch).status.success());
    });
    let run = case.reap("--wait-for-replacements 25s");
    unsealing.join().expect("it is unsealed");
    run.ends(0);
    for (namespace, name, state, cause) in [
        ("held-up", "no-room-0", "pending", "nodes are available"),
        ("held-up", "zoned-0", "pending", "nodes are available"),
        ("held-up", "sealed-0", "not-ready", "example.org/unsealed"),
        (
            "held-up",
            "no-image-0",
            "starting",
            "ErrImageNeverPull: Container image \"example.org/nowhere:1\"",
        ),
        ("held-up", "bare", "none", ""),
        ("small", "quota-0", "pending", "exceeded quota: small"),
    ] {
        let replacement = told(&run, namespace, name);
        let says = replacement["cause"].as_str().unwrap_or_default();
        assert!(
            replacement["state"] == state && says.contains(cause),
            "{name}: {replacement}"
        );
    }
    let job = evicted
        .iter()
        .find(|pod| pod.name.starts_with("at-its-limit-"))
        .expect("the Job's pod");
    let replacement = told(&run, "held-up", &job.name);
    let says = replacement["cause"].as_str().unwrap_or_default();
    assert!(
        replacement["state"] == "none" && says.contains("BackoffLimitExceeded"),
        "{replacement}"
    );

    // All other pods are replaced, except the one on the local disk, which is not reaped.
    let others = evicted
        .iter()
        .filter(|pod| pod.namespace != "held-up" && pod.namespace != "small");
    for lost in others {
        let replacement = told(&run, &lost.namespace, &lost.name);
        if lost.name == "impala-executor-000-0" {
            assert_eq!(replacement, Value::Null);
            continue;
        }
        assert_eq!(
            replacement["state"],
            "back",
            "{}: {replacement}",
            lost.called()
        );
        let new = case.get(&pod_path(&lost.namespace, str_of(&replacement["name"])));
        let owner = new["metadata"]["ownerReferences"][0]["uid"].as_str();
        assert_eq!(
            (&new["metadata"]["uid"], owner),
            (&replacement["uid"], Some(lost.owner.as_str()))
        );
        assert_eq!(new["spec"]["nodeName"], replacement["node"]);
        let mut conditions = each(&new["status"]["conditions"]);
        let ready = conditions
            .find(|condition| condition["type"] == "Ready")
            .expect("it is Ready");
        assert_eq!(ready["lastTransitionTime"], replacement["since"]);
        // The server stamps the creation of the pod and each write of its status.
        let time = |value: &Value| {
            value
                .as_str()
                .unwrap_or_default()
                .parse::<Timestamp>()
                .expect("a time")
        };
        let written = each(&new["metadata"]["managedFields"]);
        let written = written
            .filter(|entry| entry["subresource"] == "status")
            .map(|entry| time(&entry["time"]));
        let (since, made) = (
            time(&replacement["since"]),
            time(&new["metadata"]["creationTimestamp"]),
        );
        assert!(
            made <= since && since <= written.max().expect("a status"),
            "{new}"
        );
        let later = since.duration_since(made)
            >= SignedDuration::try_from(UNSEALED_AFTER).expect("seconds");
        assert!(later || lost.namespace != "unsealed", "{new}");
    }
}

fn told(run: &Run, namespace: &str, name: &str) -> Value {
    let pods = each(&run.report["pods"]);
    let mut named = pods.filter(|pod| pod["namespace"] == namespace && pod["name"] == name);
    named
        .next()
        .unwrap_or_else(|| panic!("{name} is not in {:#}", run.report))["replacement"]
        .clone()
}
