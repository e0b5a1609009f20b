//! The kubectl commands that a report prints for the user to paste.
//!
//! Four of them destroy something: the delete of a PVC, that of a node, the drain of a node, and the line that confirms that a
//! machine is off. Each begins with a check that the node is still as it was judged; otherwise it says that it did nothing.

use std::borrow::Cow;

use itertools::Itertools as _;
use jiff::Timestamp;
use serde_json::json;

use crate::{
    facts::{NodeFacts, OUT_OF_SERVICE, Ready, Uid},
    kubernetes::{CONFIRMED_OFF, SKIP},
    selector::{Target, is_name},
    words::prefixed,
};

/// How many seconds the check of a command waits for a response. Without a limit, kubectl waits forever for an API server that has
/// stopped responding. Each command that changes something begins with the check, except the one that sets a volume to Retain, so
/// that the limit is nowhere else.
const RESPONSE: u8 = 10;

impl Target {
    /// Returns the options that point kubectl, or this program, at the cluster, each preceded by a
    /// space.
    fn options(&self) -> String {
        let option = |name: &str, value: &str| {
            // A value that begins with a hyphen would be another option.
            let by = if value.starts_with('-') { '=' } else { ' ' };
            format!(" --{name}{by}{}", quoted(value))
        };
        let file = self
            .kubeconfig
            .iter()
            .map(|file| option("kubeconfig", &file.to_string_lossy()));
        let context = self
            .context
            .iter()
            .map(|context| option("context", context));
        file.chain(context).collect()
    }

    pub(super) fn command(&self, words: &[&str]) -> String {
        let words = words.iter().map(|word| quoted(word)).join(" ");
        format!("kubectl{} {words}", self.options())
    }

    /// Returns the command that deletes a PVC of a pod on `node`. It does nothing if the node is no
    /// longer the one that was judged, or if the PVC is another one; `None` if its path would be that of something else.
    pub(super) fn delete_claim(
        &self,
        node: &NodeFacts,
        namespace: &str,
        claim: &str,
        uid: &Uid,
    ) -> Option<String> {
        let path = format!("/api/v1/namespaces/{namespace}/persistentvolumeclaims/{claim}");
        let is_path = is_name(namespace) && is_name(claim);
        let delete = is_path.then(|| self.delete_raw(&path, uid))?;
        Some(self.if_still_as_judged(node, &delete))
    }

    /// Returns the command that deletes a node, and with it its pods. It does nothing if the node is no longer as it was
    /// judged.
    pub(super) fn delete_node(&self, node: &NodeFacts) -> Option<String> {
        let path = format!("/api/v1/nodes/{}", node.name);
        let delete = is_name(&node.name).then(|| self.delete_raw(&path, &node.uid))?;
        Some(self.if_still_as_judged(node, &delete))
    }

    /// Returns the command that deletes the object at the path, if it has that UID.
    fn delete_raw(&self, path: &str, uid: &Uid) -> String {
        let options = json!({"preconditions": {"uid": uid}}).to_string();
        let delete = self.command(&["delete", "--raw", path, "-f", "-"]);
        format!("echo {} | {delete}", quoted(&options))
    }

    /// Returns the command that confirms that the machine is off. It does nothing if the node is no longer as it was
    /// judged; `None` if the node does not say since when it is not Ready.
    ///
    /// With `may_taint`, the node then has the out-of-service taint for a minute: the pod garbage collector, which looks every
    /// 20 s, and the attach/detach controller ask for its key, and with the effect `NoSchedule` nothing is evicted. On a node
    /// that works again, the taint would detach what is mounted, so it is taken away also if the line is interrupted.
    pub(super) fn confirm_off(&self, node: &NodeFacts, may_taint: bool) -> Option<String> {
        let mark = format!("{CONFIRMED_OFF}={}", transition(node)?);
        let annotate = self.command(&["annotate", "--overwrite", "node", &node.name, &mark]);
        let confirm = self.if_still_as_judged(node, &annotate);
        if !may_taint {
            return Some(confirm);
        }
        let effect = "NoSchedule";
        let key_and_effect = format!("{OUT_OF_SERVICE}=nodeshutdown:{effect}");
        let taint = self.command(&["taint", "--overwrite", "node", &node.name, &key_and_effect]);
        let removed = format!("{OUT_OF_SERVICE}:{effect}-");
        let take_off = self.command(&["taint", "node", &node.name, &removed]);
        // A second ^C must not end the command that takes the taint away.
        let undo = quoted(&format!("trap \"\" INT; {take_off}"));
        Some(format!(
            "{confirm} && (trap {undo} EXIT; trap 'exit 130' INT HUP TERM; {taint} && sleep 60)"
        ))
    }

    /// Returns the command that takes the out-of-service taint away. It does nothing if the node is no longer as it was
    /// judged.
    pub(super) fn take_taint_off(&self, node: &NodeFacts) -> String {
        let undo = self.command(&["taint", "node", &node.name, &format!("{OUT_OF_SERVICE}-")]);
        self.if_still_as_judged(node, &undo)
    }

    /// Returns the command that opts the node out until that time. It does nothing if the node is no longer as it was judged.
    pub(super) fn opt_out(&self, node: &NodeFacts, until: Timestamp) -> String {
        let mark = format!("{SKIP}={}", until.strftime("%FT%TZ"));
        let annotate = self.command(&["annotate", "--overwrite", "node", &node.name, &mark]);
        self.if_still_as_judged(node, &annotate)
    }

    /// Returns the command that drains the node. It does nothing if the node is another one, or is not Ready; the time of its Ready
    /// condition has changed with the restart of its kubelet before. The command does not wait for a pod that already hangs. Without
    /// the option about an `emptyDir`, which is lost with any pod, kubectl stops at one.
    pub(super) fn drain(&self, node: &NodeFacts) -> String {
        let options = [
            "--ignore-daemonsets",
            "--delete-emptydir-data",
            "--skip-wait-for-delete-timeout=60",
        ];
        let drain = self.command(&[&["drain", &node.name][..], &options].concat());
        self.if_still(node, "", &format!("{}/{}", node.uid, node.ready), &drain)
    }

    /// Returns the line that does this only while the node is still the one that was judged and its Ready condition has not
    /// changed since.
    fn if_still_as_judged(&self, node: &NodeFacts, command: &str) -> String {
        let mut judged = node.uid.to_string();
        if node.ready != Ready::Absent {
            judged += &format!("/{}/{}", node.ready, prefixed("", transition(node)));
        }
        self.if_still(node, "/{.lastTransitionTime}", &judged, command)
    }

    /// Returns the line that does this only if UID, status and what `more` adds to them are as they were judged. Otherwise it says
    /// that nothing was done.
    fn if_still(&self, node: &NodeFacts, more: &str, judged: &str, command: &str) -> String {
        let status = format!(
            r#"jsonpath={{.metadata.uid}}{{range .status.conditions[?(@.type=="Ready")]}}/{{.status}}{more}{{end}}"#
        );
        let timeout = format!("--request-timeout={RESPONSE}s");
        let get = self.command(&["get", "node", &node.name, "-o", &status, &timeout]);
        let why = format!(
            "Nothing was done: node {} has changed, or was not read. Run pod-reaper again.",
            node.name
        );
        format!(
            "{get} | grep -qxF -- {} || {{ echo {}; false; }} && {command}",
            quoted(judged),
            quoted(&why)
        )
    }
}

/// Returns the `lastTransitionTime` of the node's `Ready` condition, as the API writes it.
fn transition(node: &NodeFacts) -> Option<String> {
    Some(node.ready_since?.strftime("%FT%TZ").to_string())
}

/// Returns one word of a shell command.
pub(super) fn quoted(word: &str) -> String {
    // shlex quotes more than a shell requires: it would also quote pods,pvc and --tail=50.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:=@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // No name has a line break. A line break would end the command. shlex refuses only NUL, which
    // no shell can pass on.
    shlex::try_quote(&word.replace('\n', " ").replace('\0', ""))
        .map_or_else(|_| String::new(), Cow::into_owned)
}
