//! Which addresses are not on the public internet, and which addresses carry another one inside.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Cidr, Rule};

/// The first row that holds an address names the rule. After IANA's registries of special purpose addresses.
const V4: &[(Cidr, Rule)] = &[
    (Cidr::v4(127, 0, 0, 0, 8), Rule::Loopback),
    (Cidr::v4(10, 0, 0, 0, 8), Rule::Private),
    (Cidr::v4(172, 16, 0, 0, 12), Rule::Private),
    (Cidr::v4(192, 168, 0, 0, 16), Rule::Private),
    // 169.254.169.254 hands out the credentials of the machine on most clouds.
    (Cidr::v4(169, 254, 0, 0, 16), Rule::LinkLocal),
    // Carriers' address translation; on some clouds metadata and neighbours (100.100.100.200).
    (Cidr::v4(100, 64, 0, 0, 10), Rule::SharedAddress),
    // Connecting to 0.0.0.0 reaches this machine.
    (Cidr::v4(0, 0, 0, 0, 8), Rule::Unspecified),
    (Cidr::v4(255, 255, 255, 255, 32), Rule::Broadcast),
    (Cidr::v4(224, 0, 0, 0, 4), Rule::Multicast),
    (Cidr::v4(192, 0, 2, 0, 24), Rule::Documentation),
    (Cidr::v4(198, 51, 100, 0, 24), Rule::Documentation),
    (Cidr::v4(203, 0, 113, 0, 24), Rule::Documentation),
    (Cidr::v4(192, 0, 0, 0, 24), Rule::Reserved),
    (Cidr::v4(192, 88, 99, 0, 24), Rule::Reserved),
    (Cidr::v4(198, 18, 0, 0, 15), Rule::Reserved),
    (Cidr::v4(240, 0, 0, 0, 4), Rule::Reserved),
];

const V6: &[(Cidr, Rule)] = &[
    (Cidr::v6([0xfc00, 0, 0, 0], 7), Rule::UniqueLocal),
    (Cidr::v6([0xfe80, 0, 0, 0], 10), Rule::LinkLocal),
    // Site-local: given up, and still routed here and there.
    (Cidr::v6([0xfec0, 0, 0, 0], 10), Rule::Private),
    (Cidr::v6([0xff00, 0, 0, 0], 8), Rule::Multicast),
    (Cidr::v6([0x2001, 0xdb8, 0, 0], 32), Rule::Documentation),
    (Cidr::v6([0x3fff, 0, 0, 0], 20), Rule::Documentation),
    // Teredo hides two IPv4 addresses, one of them flipped; nobody serves HTTP there.
    (Cidr::v6([0x2001, 0, 0, 0], 32), Rule::Embedded),
    (Cidr::v6([0x2001, 0, 0, 0], 23), Rule::Reserved),
    // Address translation that a network sets up for itself, with IPv4 addresses at places that only it knows.
    (Cidr::v6([0x64, 0xff9b, 1, 0], 48), Rule::Embedded),
];

const GLOBAL: Cidr = Cidr::v6([0x2000, 0, 0, 0], 3);
const NAT64: Cidr = Cidr::v6([0x64, 0xff9b, 0, 0], 96);

/// The rule that keeps an address from being called, if there is one. `address` is in canonical form.
pub(super) fn rule_of(address: IpAddr) -> Option<Rule> {
    match address {
        IpAddr::V4(v4) => rule_of_v4(v4),
        IpAddr::V6(v6) => rule_of_v6(v6),
    }
}

fn rule_of_v4(address: Ipv4Addr) -> Option<Rule> {
    V4.iter().find(|(range, _)| range.contains(address.into())).map(|(_, rule)| *rule)
}

fn rule_of_v6(address: Ipv6Addr) -> Option<Rule> {
    if address.is_unspecified() {
        return Some(Rule::Unspecified);
    }
    if address.is_loopback() {
        return Some(Rule::Loopback);
    }
    if let Some((_, rule)) = V6.iter().find(|(range, _)| range.contains(address.into())) {
        return Some(*rule);
    }
    if let Some(inner) = embedded(address)
        && rule_of_v4(inner).is_some()
    {
        return Some(Rule::Embedded);
    }
    // Networks that have only IPv6 reach all of IPv4 through these, so they are as good as what they carry.
    if NAT64.contains(address.into()) {
        return None;
    }
    (!GLOBAL.contains(address.into())).then_some(Rule::Reserved)
}

/// The IPv4 address that packets to this one end up at.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, .., g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    if a == 0x2002 {
        // 6to4: right behind the prefix.
        return Some(v4(b, address.segments()[2]));
    }
    // ISATAP: at the end, behind a mark, in any network.
    let is_isatap = matches!(address.segments()[4..6], [0 | 0x200, 0x5efe]);
    (NAT64.contains(address.into()) || is_isatap).then(|| v4(g, h))
}
