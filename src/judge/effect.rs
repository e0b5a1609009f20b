//! What becomes of a pod that is deleted, for the report and for the limit of room.

use super::Judged;
use crate::{
    codes::codes,
    facts::{Attached, Place, Read, Storage, Unread},
};

codes! {
    /// What becomes of a pod that is deleted. Nobody read its replacement.
    pub enum Effect {
        /// Its controller waits for the delete, or its replacement for a volume.
        Restart = "restart elsewhere",
        /// Its controller did not wait for the delete, or nothing wants it again.
        Leftover = "leftovers",
        /// It has no owner, and is no orphan of a `StatefulSet`.
        GoneForGood = "gone for good" => "(no owner starts them again)",
        /// Its owner is no controller, or its `StatefulSet` was deleted without it and may come back.
        UpToOwner = "up to their owners" => "(an owner that is no controller, or a StatefulSet that was deleted without its pods)",
    }
}

impl Effect {
    /// Tells what becomes of a pod, a volume of which is `attached` to its node. What was not read may be.
    pub fn of(judged: &Judged, attached: &Read<bool>) -> Self {
        let pod = &judged.pod;
        // `status.volumesAttached` is not asked: a VolumeAttachment, or a disk for one node.
        let waits_for_a_disk = *attached.as_ref().unwrap_or(&true)
            || judged.volumes().any(|volume| volume.driver.is_some());
        match (&pod.owner, &pod.controller) {
            _ if judged.unneeded().is_some() => Self::Leftover,
            (None, _) if !pod.is_orphan => Self::GoneForGood,
            (_, None) => Self::UpToOwner,
            _ if pod.bound || pod.made_by("DaemonSet", "apps") => Self::Leftover,
            _ if pod.is_replaced_early() && !waits_for_a_disk && !pod.held_by_job() => {
                Self::Leftover
            }
            _ => Self::Restart,
        }
    }
}

/// Reports whether a volume of the pod is attached to its node. Without a volume that something may attach, none is.
pub fn is_attached(judged: &Judged, attached: &Read<Attached<'_>>) -> Read<bool> {
    let mut volumes = judged
        .storage
        .iter()
        .flat_map(Storage::claims)
        .filter(|claim| claim.attaches != Some(Ok(false)))
        .filter_map(|claim| claim.read.volume())
        .filter(|volume| matches!(volume.storage, Place::Driver | Place::StrictLocal))
        .peekable();
    let Some(node) = judged
        .pod
        .node
        .as_deref()
        .filter(|_| volumes.peek().is_some())
    else {
        return Ok(false);
    };
    let attached = attached.as_ref().map_err(Unread::clone)?;
    Ok(volumes.any(|volume| attached.contains_key(&(node, volume.name.as_str()))))
}
