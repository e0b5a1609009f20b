//! Force-deletes pods stuck Terminating on NotReady Kubernetes nodes, and tells a person what to do about the rest.

pub mod decide;
pub mod facts;
pub mod limits;
