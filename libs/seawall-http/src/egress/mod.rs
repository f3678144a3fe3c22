//! Where a client may connect to.
#![doc = ""]
#![doc = include_str!("../../docs/egress.md")]

mod cidr;
mod ranges;

pub use cidr::{BadCidr, Cidr};

use std::fmt;
use std::net::{IpAddr, SocketAddr};

/// Which addresses a client may connect to. Checked at the socket, after the name was resolved: whatever stands in a URL,
/// an answer of DNS or a redirect, no connection is made to an address that it refuses.
///
/// ```
/// # use seawall_http::egress::Egress;
/// let rules = Egress::default().allow("10.1.0.0/16".parse()?);
/// assert!(rules.check("93.184.216.34:443".parse()?).is_ok());
/// assert!(rules.check("10.1.2.3:443".parse()?).is_ok());
/// assert!(rules.check("169.254.169.254:80".parse()?).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Egress {
    allow: Vec<Cidr>,
    deny: Vec<Cidr>,
    /// Empty: every port.
    ports: Vec<u16>,
    unrestricted: bool,
}

impl Egress {
    /// No rules at all, for a client whose targets are named by your own code and nobody else. What [`deny`](Egress::deny)
    /// and [`ports`](Egress::ports) add holds.
    #[must_use]
    pub fn unrestricted() -> Self {
        Egress { unrestricted: true, ..Egress::default() }
    }

    /// Opens a hole: addresses in this range may be called, although they are not public.
    #[must_use]
    pub fn allow(mut self, range: Cidr) -> Self {
        self.allow.push(range);
        self
    }

    /// Closes a range, whatever else is allowed.
    #[must_use]
    pub fn deny(mut self, range: Cidr) -> Self {
        self.deny.push(range);
        self
    }

    /// Only these ports. Without it, every port.
    #[must_use]
    pub fn ports(mut self, ports: impl IntoIterator<Item = u16>) -> Self {
        self.ports.extend(ports);
        self
    }

    /// Whether a connection to this address may be made.
    pub fn check(&self, address: SocketAddr) -> Result<(), Refused> {
        // An IPv4 address in IPv6 clothes is the IPv4 address: that is where the kernel connects to.
        let ip = address.ip().to_canonical();
        let refuse = |rule| Err(Refused { address, rule });
        if !self.ports.is_empty() && !self.ports.contains(&address.port()) {
            return refuse(Rule::Port);
        }
        if holds(&self.deny, ip) {
            return refuse(Rule::Denied);
        }
        if self.unrestricted || holds(&self.allow, ip) {
            return Ok(());
        }
        ranges::rule_of(ip).map_or(Ok(()), refuse)
    }
}

fn holds(ranges: &[Cidr], ip: IpAddr) -> bool {
    ranges.iter().any(|range| range.contains(ip))
}

/// Why an address is refused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Rule {
    /// This machine.
    Loopback,
    /// A private network.
    Private,
    /// This network segment: neighbours, and on clouds the machine's credentials.
    LinkLocal,
    /// A carrier's or a cloud's shared addresses (100.64.0.0/10).
    SharedAddress,
    /// A private network of IPv6.
    UniqueLocal,
    /// No address at all, which many systems take for this machine.
    Unspecified,
    /// Everybody on this segment.
    Broadcast,
    /// A group.
    Multicast,
    /// Addresses for examples.
    Documentation,
    /// Addresses that nobody should have.
    Reserved,
    /// An IPv6 address that carries a refused IPv4 address inside.
    Embedded,
    /// A range that was closed by [`Egress::deny`].
    Denied,
    /// A port that is not among [`Egress::ports`].
    Port,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Rule::Loopback => "loopback",
            Rule::Private => "a private network",
            Rule::LinkLocal => "link-local",
            Rule::SharedAddress => "shared address space",
            Rule::UniqueLocal => "a private network (unique local)",
            Rule::Unspecified => "unspecified",
            Rule::Broadcast => "broadcast",
            Rule::Multicast => "multicast",
            Rule::Documentation => "for documentation only",
            Rule::Reserved => "reserved",
            Rule::Embedded => "a detour to an address that is refused",
            Rule::Denied => "denied by a rule",
            Rule::Port => "on a port that is not allowed",
        })
    }
}

/// An address that may not be called, and why. For the operator's eyes: whoever chose the URL learns only that it was
/// refused, or the answers would be a map of the inner network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refused {
    address: SocketAddr,
    rule: Rule,
}

impl Refused {
    /// The address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it is refused for.
    #[must_use]
    pub fn rule(&self) -> Rule {
        self.rule
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}", self.address, self.rule)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests;
