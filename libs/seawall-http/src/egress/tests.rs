//! The table of addresses.

use super::*;

/// SEC-3, PRM-10: every family of special addresses, and the detours to them.
#[test]
fn sec_3_every_family_of_addresses_has_its_rule() {
    use Rule as R;
    let table: &[(&str, Option<Rule>)] = &[
        ("8.8.8.8", None),
        ("93.184.216.34", None),
        ("1.1.1.1", None),
        ("11.0.0.1", None),
        ("9.255.255.255", None),
        ("127.0.0.1", Some(R::Loopback)),
        ("127.0.0.0", Some(R::Loopback)),
        ("127.255.255.254", Some(R::Loopback)),
        ("126.255.255.255", None),
        ("128.0.0.1", None),
        ("10.0.0.1", Some(R::Private)),
        ("10.255.255.255", Some(R::Private)),
        ("172.15.255.255", None),
        ("172.16.0.1", Some(R::Private)),
        ("172.31.255.255", Some(R::Private)),
        ("172.32.0.0", None),
        ("192.168.0.1", Some(R::Private)),
        ("192.167.255.255", None),
        ("192.169.0.0", None),
        ("169.254.169.254", Some(R::LinkLocal)),
        ("169.254.170.2", Some(R::LinkLocal)),
        ("169.253.255.255", None),
        ("100.63.255.255", None),
        ("100.64.0.1", Some(R::SharedAddress)),
        ("100.100.100.200", Some(R::SharedAddress)),
        ("100.127.255.255", Some(R::SharedAddress)),
        ("100.128.0.0", None),
        ("0.0.0.0", Some(R::Unspecified)),
        ("0.1.2.3", Some(R::Unspecified)),
        ("255.255.255.255", Some(R::Broadcast)),
        ("224.0.0.1", Some(R::Multicast)),
        ("239.255.255.255", Some(R::Multicast)),
        ("240.0.0.1", Some(R::Reserved)),
        ("192.0.0.192", Some(R::Reserved)),
        ("192.0.2.1", Some(R::Documentation)),
        ("198.51.100.7", Some(R::Documentation)),
        ("203.0.113.9", Some(R::Documentation)),
        ("198.18.0.1", Some(R::Reserved)),
        ("198.19.255.255", Some(R::Reserved)),
        ("192.88.99.1", Some(R::Reserved)),
        ("2606:4700:4700::1111", None),
        ("2a00:1450:4001::1", None),
        ("::", Some(R::Unspecified)),
        ("::1", Some(R::Loopback)),
        ("::2", Some(R::Reserved)),
        ("::127.0.0.1", Some(R::Reserved)),
        ("::ffff:127.0.0.1", Some(R::Loopback)),
        ("::ffff:10.0.0.1", Some(R::Private)),
        ("::ffff:a9fe:a9fe", Some(R::LinkLocal)),
        ("::ffff:8.8.8.8", None),
        ("::ffff:0:127.0.0.1", Some(R::Reserved)),
        ("64:ff9b::7f00:1", Some(R::Embedded)),
        ("64:ff9b::a9fe:a9fe", Some(R::Embedded)),
        ("64:ff9b::808:808", None),
        ("64:ff9b:1::808:808", Some(R::Embedded)),
        ("2002:7f00:1::", Some(R::Embedded)),
        ("2002:a00:1::1", Some(R::Embedded)),
        ("2002:a9fe:a9fe::1", Some(R::Embedded)),
        ("2002:808:808::1", None),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", Some(R::Embedded)),
        ("2001:0::1", Some(R::Embedded)),
        ("2606:4700::5efe:10.0.0.1", Some(R::Embedded)),
        ("2606:4700::200:5efe:127.0.0.1", Some(R::Embedded)),
        ("2606:4700::5efe:8.8.8.8", None),
        ("fd00:ec2::254", Some(R::UniqueLocal)),
        ("fc00::1", Some(R::UniqueLocal)),
        ("fdff:ffff::1", Some(R::UniqueLocal)),
        ("fe80::1", Some(R::LinkLocal)),
        ("febf::1", Some(R::LinkLocal)),
        ("fec0::1", Some(R::Private)),
        ("ff02::1", Some(R::Multicast)),
        ("2001:db8::1", Some(R::Documentation)),
        ("3fff::1", Some(R::Documentation)),
        ("2001:10::1", Some(R::Reserved)),
        ("2001:20::1", Some(R::Reserved)),
        ("100::1", Some(R::Reserved)),
        ("5f00::1", Some(R::Reserved)),
        ("4000::1", Some(R::Reserved)),
    ];
    assert!(table.len() >= 60);
    for (text, rule) in table {
        let address = SocketAddr::new(text.parse().unwrap(), 80);
        let found = Egress::default().check(address).err().map(|refused| refused.rule());
        assert_eq!(found, *rule, "{text}");
    }
}

/// SEC-3: private ranges only by allow-list, and a hole is only as wide as it is said.
#[test]
fn sec_3_a_hole_is_only_as_wide_as_it_is_said() {
    let rules = Egress::default().allow("127.0.0.0/8".parse().unwrap()).deny("127.6.6.6".parse().unwrap());
    let check = |text: &str| rules.check(text.parse().unwrap()).map_err(|refused| refused.rule());
    assert_eq!(check("127.0.0.1:80"), Ok(()));
    assert_eq!(check("[::ffff:127.0.0.1]:80"), Ok(()));
    assert_eq!(check("[::1]:80"), Err(Rule::Loopback));
    assert_eq!(check("10.0.0.1:80"), Err(Rule::Private));
    assert_eq!(check("[64:ff9b::7f00:1]:80"), Err(Rule::Embedded));
    assert_eq!(check("127.6.6.6:80"), Err(Rule::Denied));
    assert_eq!(check("[::ffff:127.6.6.6]:80"), Err(Rule::Denied));
}

/// SEC-3: ports, and clients without rules.
#[test]
fn sec_3_ports_and_denied_ranges_hold_even_without_other_rules() {
    let rules = Egress::unrestricted().ports([80, 443]).deny("10.0.0.0/8".parse().unwrap());
    let check = |text: &str| rules.check(text.parse().unwrap()).map_err(|refused| refused.rule());
    assert_eq!(check("127.0.0.1:80"), Ok(()));
    assert_eq!(check("127.0.0.1:22"), Err(Rule::Port));
    assert_eq!(check("10.0.0.1:443"), Err(Rule::Denied));
    assert_eq!(Egress::unrestricted().check("[::1]:22".parse().unwrap()), Ok(()));
}

#[test]
fn a_range_is_read_whole_or_refused() {
    for text in ["0.0.0.0/0", "::/0", "10.0.0.0/8", "1.2.3.4", "fd00::/8", "1.2.3.4/32"] {
        assert!(text.parse::<Cidr>().is_ok(), "{text}");
    }
    for text in ["", "10.0.0.0/33", "::/129", "10.0/8", "a", "1.2.3.4/", "1.2.3.4/-1"] {
        assert!(text.parse::<Cidr>().is_err(), "{text}");
    }
    let all: Cidr = "0.0.0.0/0".parse().unwrap();
    assert!(all.contains("255.255.255.255".parse().unwrap()) && !all.contains("::1".parse().unwrap()));
}
