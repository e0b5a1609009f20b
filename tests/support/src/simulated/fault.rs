//! The faults, and their frequencies.

use itertools::Itertools as _;
use std::time::Duration;

use serde_json::json;

use super::{Dice, Kind, Request, status_object};

/// The treatment of a request.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fate {
    pub fault: Option<Fault>,
    /// The duration of the request to the server, and of the response to the client.
    pub there: Duration,
    pub back: Duration,
    /// Selects the malformed object of a page.
    pub pick: usize,
}

/// A fault of a response. The last `bool` is whether the request took effect nevertheless.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fault {
    /// 429 or 503, with or without `Retry-After`.
    Busy(u16, Option<u64>),
    /// A status. If the first flag is set, the status comes from a load balancer and not from the API server.
    Status(u16, bool, bool),
    Hangs(bool),
    /// The connection ends.
    Lost(bool),
    /// The request is this many milliseconds late.
    Slow(u64),
    /// The response is this many milliseconds late, and says what was true before.
    Late(u64),
    /// The body is cut off.
    Cut,
    /// The body is not JSON.
    Garbage,
    /// The body is an object without content.
    Empty,
    NoDate,
    /// 200 without any effect.
    NoEffect,
    /// The API server cannot call a webhook.
    Webhook,
    /// Admission refuses.
    Denied(u16),
    /// One object does not parse.
    Malformed,
    /// The token of a list's next page has expired.
    Expired,
}

impl Fault {
    pub const COUNT: usize = 15;

    /// A random fault that is possible for this kind of request.
    pub fn random(kind: Kind, dice: &mut Dice) -> Self {
        let effect = dice.permille(500);
        let page = dice.permille(300);
        let late = 2 * u64::try_from(dice.below(5_500)).expect("it is small");
        let any = [
            (3, Self::Busy(429, None)),
            (2, Self::Busy(429, Some(1))),
            (1, Self::Busy(503, Some(4))),
            (1, Self::Busy(429, Some(3_600))),
            (3, Self::Status(500, page, effect)),
            (1, Self::Status(502, true, effect)),
            (4, Self::Status(503, page, effect)),
            (1, Self::Status(504, page, effect)),
            (3, Self::Hangs(effect)),
            (4, Self::Lost(effect)),
            (6, Self::Slow(late)),
            (6, Self::Late(late)),
            (2, Self::Cut),
            (2, Self::Garbage),
            (2, Self::Empty),
            (2, Self::NoDate),
            (1, Self::Status(401, false, false)),
            (2, Self::Status(403, page, false)),
            (2, Self::Status(404, true, false)),
            (1, Self::Status(302, true, false)),
        ];
        let own: &[_] = match kind {
            Kind::Delete | Kind::Patch | Kind::DryRun | Kind::Note => &[
                (8, Self::NoEffect),
                (8, Self::Webhook),
                (6, Self::Denied(403)),
                (6, Self::Denied(422)),
            ],
            kind if kind.is_list() => &[(5, Self::Malformed), (8, Self::Expired)],
            _ => &[(5, Self::Malformed)],
        };
        dice.weigh(&any.iter().chain(own).copied().collect_vec())
    }

    pub(super) fn name(self) -> String {
        let name = format!("{self:?}");
        name.split('(').next().unwrap_or_default().to_owned()
    }

    pub(super) fn takes_effect(self) -> bool {
        !matches!(
            self,
            Self::Busy(..)
                | Self::Status(_, _, false)
                | Self::Hangs(false)
                | Self::Lost(false)
                | Self::NoEffect
                | Self::Webhook
                | Self::Denied(_)
        )
    }

    /// Status and body that reach the client in place of the server's own.
    pub(super) fn instead(self, status: u16, body: &str) -> Option<(u16, String)> {
        let page = || "<html><body>the page of a proxy</body></html>".to_owned();
        let answer =
            |code, reason, message| Some((code, status_object(code, reason, message).to_string()));
        match self {
            Self::Busy(code, _) => answer(code, "TooManyRequests", "later"),
            Self::Status(code, true, _) => Some((code, page())),
            Self::Status(404, false, _) => answer(404, "NotFound", "not found"),
            Self::Status(403, false, _) => answer(403, "Forbidden", "cannot list resource"),
            Self::Status(code, false, _) => answer(code, "Trouble", "no"),
            Self::Webhook => {
                let cause = r#"failed calling webhook "w": refused"#;
                let message = format!("Internal error occurred: {cause}");
                let mut status = status_object(500, "InternalError", &message);
                status["details"] = json!({"causes": [{"message": cause}]});
                Some((500, status.to_string()))
            }
            Self::Denied(code) => answer(code, "Forbidden", "denied"),
            Self::Expired => answer(410, "Expired", "too old"),
            Self::Cut => Some((status, body[..body.len() / 2].to_owned())),
            Self::Garbage => Some((status, page())),
            Self::Empty => Some((status, "{}".to_owned())),
            _ => None,
        }
    }
}

/// The frequency of faults in a run.
#[derive(Debug, Clone)]
pub struct Trouble {
    /// The number of requests with a fault, in a thousand.
    pub faults: usize,
    /// A fault of every request of a kind, after this many of them.
    pub always: Option<(Kind, Fault)>,
    pub after: usize,
    /// The longest duration of a request, and of a response, in steps of 2 ms. A run ends at an odd millisecond, so that no two
    /// events coincide and a seed repeats its run.
    pub latency: usize,
}

impl Trouble {
    pub fn is_faulty(&self) -> bool {
        self.faults > 0 || self.always.is_some()
    }

    /// The fate of each request, in order.
    pub fn fates(self, mut dice: Dice) -> impl FnMut(&Request) -> Fate + Send + 'static {
        let mut left = self.after;
        move |request| {
            let random = dice
                .permille(self.faults)
                .then(|| Fault::random(request.kind, &mut dice));
            let always = self
                .always
                .filter(|(kind, _)| *kind == request.kind)
                .map(|(_, fault)| fault);
            let always = always.filter(|_| left == 0);
            if self.always.is_some_and(|(kind, _)| kind == request.kind) {
                left = left.saturating_sub(1);
            }
            let fault = always.or(random);
            let (mut there, mut back) = (self.way(&mut dice), self.way(&mut dice));
            match fault {
                Some(Fault::Slow(late)) => there += Duration::from_millis(late),
                Some(Fault::Late(late)) => back += Duration::from_millis(late),
                _ => {}
            }
            Fate {
                fault,
                there,
                back,
                pick: dice.below(1 << 16),
            }
        }
    }

    fn way(&self, dice: &mut Dice) -> Duration {
        Duration::from_millis(2 * u64::try_from(dice.below(self.latency)).expect("it is small"))
    }
}
