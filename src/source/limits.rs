//! How much is looked up of what the pods of one namespace name. Their author decides how many
//! claims they name, and how: so each namespace has a share, and all have their turns.

use std::collections::{BTreeMap, BTreeSet};

use super::{Source, Store};
use crate::{
    facts::{ANY_CLAIM, ClaimFacts, PodFacts},
    selector::is_name,
};

/// The most claims of one namespace that a run looks up, at two or three requests each.
const OF_NAMESPACE: usize = 640;

/// Orders `due` as their claims are to be looked up: the `preferred` first, then a pod of each
/// namespace in turn, the longest overdue first. A claim that is not to be looked up counts as
/// unread, which is no error of the run. Of a pod that no share is left for, one claim stands for all.
pub fn admit(
    store: &Store<'_, impl Source>,
    due: &mut Vec<&mut PodFacts>,
    preferred: impl Fn(&PodFacts) -> bool,
) {
    due.sort_by_key(|pod| (!preferred(pod), pod.deletion_deadline));
    let mut turns = BTreeMap::new();
    due.sort_by_cached_key(|pod| {
        let turn = turns.entry(pod.namespace.clone()).or_insert(0_usize);
        *turn += 1;
        (!preferred(pod), *turn)
    });
    let mut looked_up = BTreeMap::<_, BTreeSet<_>>::new();
    due.retain_mut(|pod| {
        let looked_up = looked_up.entry(pod.namespace.clone()).or_default();
        let named = pod.claims.iter().filter(|it| is_name(&it.name));
        let is_new = |claim: &&ClaimFacts| {
            !looked_up.contains(&claim.name) && !store.knows_claim(&pod.namespace, &claim.name)
        };
        let new = named.filter(is_new).map(|claim| claim.name.clone());
        let new = new.collect::<Vec<_>>();
        if looked_up.len() + new.len() > OF_NAMESPACE {
            pod.claims = vec![ClaimFacts::any(format!(
                "more than {OF_NAMESPACE} claims of its namespace are due, and a run looks up no more"
            ))];
            return false;
        }
        looked_up.extend(new);
        // What stands for the claims of a pod that uses too many is not looked up.
        !matches!(&pod.claims[..], [only] if only.name == ANY_CLAIM)
    });
}
