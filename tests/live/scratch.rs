//! The storage of the executor is declared scratch, so that it comes back without a person; or a person gives it up.

use crate::{
    deployed::USER,
    prelude::*,
    support::installed::{as_user, kubeconfig_of, kustomized, settings_of},
};

const CLAIM: &str = "/api/v1/namespaces/impala-impala01/persistentvolumeclaims/scratch-cache-volume-impala-executor-000-0";

/// Where and by what name the reaper is installed.
const NAMESPACE: &str = "ops";
const NAME: &str = "night-pod-reaper";
const ACCOUNT: &str = "system:serviceaccount:ops:night-pod-reaper";

/// The schedule is scaled to one second for each minute of the operators' case.
const TICK: Duration = Duration::from_secs(10);
const TOLERATION_SECONDS: u32 = 5;

#[test]
fn an_executor_with_scratch_runs_on_another_node_without_a_person() {
    let case = Case::with(&SIX, TOLERATION_SECONDS, &[]);
    annotate(&case, CLAIM, "pod-reaper.io/scratch", "true");
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    let executor = || {
        case.pods()
            .into_iter()
            .find(|pod| pod.name == "impala-executor-000-0")
    };

    case.stop(FAILING);
    let old = case.until("it is Terminating", || {
        executor().filter(|pod: &Seen| pod.deadline.is_some())
    });
    loop {
        thread::sleep(TICK);
        // Without the option it waits for a person, run after run.
        let before = case.reap("--dry-run");
        let with = case.reap("--reap-scratch");
        match with.reason_and_outcome(&old.uid) {
            ("not-overdue", None) => {}
            ("scratch", Some("deleted")) => {
                before.says(&old.uid, ("local-volume", None));
                with.ends(0);
                break;
            }
            other => panic!("{other:?}: {}", with.log),
        }
    }
    let new = case.until_replaced(&[old]);
    assert_ne!(new[0].node, FAILING);
    assert_ne!(case.get(CLAIM)["metadata"]["uid"], claim);
}

/// The CronJob as shipped leaves a claim alone that nobody declared scratch. After a person's answer it may not delete that
/// either, and says what grants it; with that component, it does.
#[test]
fn an_executor_whose_claim_a_person_gives_up_runs_on_another_node() {
    let case = Case::start();
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    let evicted = case.fails(FAILING);
    let old = evicted
        .iter()
        .find(|pod| pod.name == "impala-executor-000-0")
        .expect("it was there");
    let is_untouched = || {
        let found = case.get(CLAIM);
        let metadata = &found["metadata"];
        assert_eq!(
            (&metadata["uid"], metadata.get("deletionTimestamp")),
            (&claim, None)
        );
        assert_eq!(found["status"]["phase"], "Bound");
        assert!(case.evictable_on(FAILING).contains(old), "{old:?}");
    };
    // Not even with all rights and the option: it is not annotated.
    let run = case.reap("--reap-scratch");
    run.says(&old.uid, ("local-volume", None));
    is_untouched();

    // An installation by another name, in another namespace.
    let apply = |components: &[&str]| {
        let lines = "namespace: ops\nnamePrefix: night-\n";
        case.apply(&kustomized(DEFAULT, components, lines));
    };
    apply(&[]);
    let user = json!({"securityContext": {"runAsUser": USER}});
    let spec = json!({"suspend": true, "jobTemplate": {"spec": {"template": {"spec": user}}}});
    let cronjob = format!("/apis/batch/v1/namespaces/{NAMESPACE}/cronjobs/{NAME}");
    case.merge_patch(&cronjob, json!({"spec": spec}));
    let account = kubeconfig_of(&case, NAMESPACE, NAME);
    let may =
        |method: &str, path: &str| as_user(ACCOUNT, &case, method, path, &yaml("{dryRun: [All]}"));
    until("the account may read pods", || {
        may("GET", "/api/v1/pods").0 == 200
    });
    // The container of a tick is simulated, so the test runs the program in its place, with its account and settings.
    let tick = |job: &str| {
        let pod = case.until(&format!("the pod of job {job} runs"), || {
            let mut pods = case.pods().into_iter();
            pods.find(|pod| pod.name.starts_with(&format!("{job}-")) && pod.is_running())
        });
        let settings = settings_of(&case, NAMESPACE, NAME);
        let own = [("POD_NAME", &*pod.name), ("POD_NAMESPACE", NAMESPACE)];
        let variables = settings.iter().map(|(name, value)| (&**name, &**value));
        let variables = variables.chain(own).collect_vec();
        case.reap_with(&account, &variables, &OPTIONS)
    };
    // In the cluster there is no kubeconfig to be named, and a person's kubectl uses their own.
    let pasted = |command: &str| {
        let theirs = command.replace(
            &account.display().to_string(),
            &case.kubeconfig.display().to_string(),
        );
        let output = paste(&case, &theirs);
        assert!(output.status.success(), "{theirs}\n{}", shown(&output));
    };
    let answered = |name: &str| {
        let from = format!("--from=cronjob/{NAME}");
        kubectl(&case, &["create", "job", "-n", NAMESPACE, &from, name]);
        let asks = tick(name);
        asks.ends(5);
        asks.says(&old.uid, ("local-volume", None));
        is_untouched();
        let [answer] = commands(&asks, &old.uid)
            .try_into()
            .expect("one line to paste");
        assert!(answer.starts_with("kubectl annotate pvc "), "{answer}");
        pasted(&answer);
        is_untouched();
        let now = &asks.report["runNow"]["command"];
        let now = now.as_str().expect("a way to have a run at once");
        assert!(
            now.contains(&format!("-n {NAMESPACE} --from=cronjob/{NAME}")),
            "{now}"
        );
        pasted(now);
        let mut words = now.split(' ');
        tick(
            words
                .find(|word| word.starts_with("answers-"))
                .expect("a name"),
        )
    };

    let refused = answered("without-the-component");
    refused.ends(3);
    refused.says(&old.uid, ("answered", Some("denied")));
    is_untouched();

    let withdrawn = yaml("{metadata: {annotations: {pod-reaper.io/give-up: null}}}");
    case.merge_patch(CLAIM, withdrawn);
    apply(&["answers"]);
    until("the component is in force", || {
        let (_, answer) = may("DELETE", CLAIM);
        let message = answer["message"].as_str().unwrap_or_default();
        message.contains("pod-reaper may delete only claims that are annotated")
    });
    let reaped = answered("with-the-component");
    reaped.ends(0);
    reaped.says(&old.uid, ("answered", Some("deleted")));
    let new = case.until_replaced(std::slice::from_ref(old));
    assert_eq!(new[0].node, "ds04", "the other disk is there");
    let made = case.get(CLAIM);
    assert_ne!(made["metadata"]["uid"], claim);
    assert_eq!(made["spec"]["volumeName"], "disk-of-ds04");
    let events = case.get("/apis/events.k8s.io/v1/namespaces/impala-impala01/events");
    let mut events = each(&events["items"]);
    assert!(
        events.any(|event| event["reason"] == "Answered"
            && event["regarding"]["name"] == "impala-executor-000"),
        "no Event says that it was answered"
    );
}

/// A StatefulSet whose first ordinal was moved up makes neither the pod nor the claim again.
#[test]
fn an_executor_that_its_set_no_longer_numbers_keeps_its_claim() {
    let case = Case::start();
    annotate(&case, CLAIM, "pod-reaper.io/scratch", "true");
    let claim = case.get(CLAIM)["metadata"]["uid"].clone();
    case.fails(FAILING);
    let named = |name: &str| case.pods().into_iter().find(|pod| pod.name == name);
    let old = named("impala-executor-000-0").expect("it is stuck");
    let set = "/apis/apps/v1/namespaces/impala-impala01/statefulsets/impala-executor-000";
    case.merge_patch(set, yaml("{spec: {ordinals: {start: 1}}}"));
    case.until("the set makes its new first pod", || {
        named("impala-executor-000-1")
    });

    let run = case.reap("--reap-scratch");
    run.says(&old.uid, REAPED);
    let found = case.get(CLAIM);
    let metadata = &found["metadata"];
    assert_eq!(
        (&metadata["uid"], metadata.get("deletionTimestamp")),
        (&claim, None)
    );
    case.until_true("the set counts one pod, its new one", || {
        let status = &case.get(set)["status"];
        status["replicas"] == 1 && named(&old.name).is_none()
    });
    assert!(named("impala-executor-000-1").is_some());
}
