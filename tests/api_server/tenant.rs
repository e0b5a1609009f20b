//! What a tenant with the right to write pods and Leases in one namespace can do to the others.

use crate::{prelude::*, support::installed::install};

const TENANT: &str = "tenant";
/// A command of ours, with blanks that are no spaces.
const COMMAND: &str = "kubectl\u{2800}delete\u{2800}namespace zebra --wait=false      kubectl delete namespace zebra --wait=false \
    kubectl delete namespace zebra";

/// A tenant who never ran on the dead node holds a Lease in its name until 2099, and has a pod there that never starts, to which
/// "Patroni" writes. Another one of the tenant's pods is stuck on it, with a note that looks like a command.
#[test]
fn a_tenant_keeps_nobodys_pods_and_speaks_in_no_report() {
    let cluster = fresh();
    one_is_stuck(&cluster);
    install(&cluster, DEFAULT);
    namespace(&cluster, "zebra");
    // The rules of `edit` are aggregated by a controller, which this cluster lacks.
    let rule = |group: &str, of: &str| json!({"apiGroups": [group], "resources": [of], "verbs": ["create", "delete"]});
    let rules = [rule("", "pods"), rule("coordination.k8s.io", "leases")];
    let api = "/apis/rbac.authorization.k8s.io/v1/namespaces/zebra";
    let role = json!({"metadata": {"name": "edit"}, "rules": rules});
    cluster.create(&format!("{api}/roles"), role);
    let binding = json!({"metadata": {"name": "edit"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "edit"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": TENANT}]});
    cluster.create(&format!("{api}/rolebindings"), binding);
    let writes = |path: &str, object: &Value| as_user(TENANT, &cluster, "POST", path, object);
    let container = json!({"name": "main", "image": "example/main:1"});
    let pod = json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "patroni-0", "annotations": {"pod-reaper.io/after-reap": COMMAND}},
        "spec": {"nodeName": "dead", "terminationGracePeriodSeconds": 1, "containers": [container]}});
    let pods = "/api/v1/namespaces/zebra/pods";
    until("the tenant may write", || {
        let (code, answer) = writes(&format!("{pods}?fieldManager=Patroni"), &pod);
        assert!([201, 403].contains(&code), "{answer}");
        code == 201
    });
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "dead"},
        "spec": {"holderIdentity": format!("dead_{COMMAND}"), "renewTime": "2099-01-01T00:00:00.000000Z"}});
    let leases = "/apis/coordination.k8s.io/v1/namespaces/zebra/leases";
    let (code, answer) = writes(leases, &lease);
    assert_eq!(code, 201, "{answer}");
    // The API server prints these years as -0001 and 10000.
    for (name, at) in [
        ("first", "0000-01-01T00:00:00.000000+23:59"),
        ("last", "9999-12-31T23:59:59.000000-23:59"),
    ] {
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name},
            "spec": {"holderIdentity": "dead", "renewTime": at}});
        let (code, answer) = writes(leases, &lease);
        assert_eq!(code, 201, "{answer}");
    }
    let options = json!({"gracePeriodSeconds": 1});
    let (code, answer) = as_user(
        TENANT,
        &cluster,
        "DELETE",
        &format!("{pods}/patroni-0"),
        &options,
    );
    assert_eq!(code, 200, "{answer}");
    until_overdue();
    let mut run = binary(&cluster.kubeconfig);
    let said = shown(
        &run.args(SHORT)
            .arg("--log-level=off")
            .output()
            .expect("it starts"),
    );
    assert!(cluster.try_get(STUCK).is_none(), "{said}");
    assert!(said.contains("\"kubectl\u{fffd}delete"), "{said}");
    for line in said.lines() {
        let own = line.split('"').step_by(2).collect::<String>();
        assert!(!own.contains("namespace zebra"), "{line}\n{said}");
    }
}
