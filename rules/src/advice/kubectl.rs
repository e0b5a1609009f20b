//! Lines to paste.

use std::borrow::Cow;

use itertools::Itertools as _;

use crate::{
    decide::Answer,
    facts::{NodeFacts, Ready},
    selector::Target,
    words::after,
};

/// kubectl, pointed at the cluster that was judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Kubectl(pub Target);

impl Kubectl {
    /// The options that point at the cluster, each after a blank.
    fn target(&self) -> String {
        let file = self
            .0
            .kubeconfig
            .as_ref()
            .map(|file| quoted(&file.to_string_lossy()));
        let context = self.0.context.as_deref().map(quoted);
        after(" --kubeconfig ", file) + &after(" --context ", context)
    }

    pub(super) fn command(&self, words: &[&str]) -> String {
        format!("kubectl{} {}", self.target(), all_quoted(words))
    }

    /// A command whose end says which cluster: what it does to what comes first.
    pub(super) fn ends_with_target(&self, words: &[&str]) -> String {
        format!("kubectl {}{}", all_quoted(words), self.target())
    }

    /// Changes an annotation of objects of a kind: `change` says how.
    pub(super) fn annotate(
        &self,
        kind: &str,
        names: &[&str],
        namespace: &str,
        change: &[&str],
    ) -> String {
        let within: &[_] = match kind {
            "node" => &[],
            _ => &["-n", namespace],
        };
        self.ends_with_target(&[&["annotate", kind], names, within, change].concat())
    }

    /// Takes the annotation of an answer away.
    pub fn withdraw(&self, answer: &Answer, namespace: &str) -> String {
        let key = format!("{}-", answer.annotation);
        self.annotate(answer.on, &[&answer.name], namespace, &[&key])
    }

    /// Holds while the node is the one that was judged, and its Ready has not changed since.
    pub(super) fn still_as_judged(&self, node: &NodeFacts) -> String {
        let status = r#"jsonpath={.metadata.uid}{range .status.conditions[?(@.type=="Ready")]}/{.status}/{.lastTransitionTime}{end}"#;
        let mut judged = node.uid.to_string();
        if node.ready != Ready::Absent {
            let since = node.ready_since.map(|since| since.strftime("%FT%TZ"));
            judged += &format!("/{}/{}", node.ready, after("", since));
        }
        let get = self.command(&["get", "node", &node.name, "-o", status]);
        format!("{get} | grep -qxF -- {}", quoted(&judged))
    }
}

fn all_quoted(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).join(" ")
}

fn quoted(word: &str) -> String {
    // shlex is stricter than any shell: it would quote pods,pvc and --tail=50 too.
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./,:=@%+".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // No name has a line break, which would end the line. shlex refuses nothing but NUL, which no shell could pass on.
    let word = word.replace('\n', " ").replace('\0', "");
    shlex::try_quote(&word).map_or_else(|_| String::new(), Cow::into_owned)
}
