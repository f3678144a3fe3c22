//! Slows down clients that guess keys at the login.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use seawall::Tick;
use seawall_hub_core::sync::Lock;

/// The maximum number of wrong keys per address.
const WRONG_MAX: u32 = 10;
/// The time in which these failures count; after the last one, the address waits for the rest of it.
const WITHIN: Duration = Duration::from_secs(60);
/// The maximum number of addresses that are counted apart; all others are counted together.
const ADDRESSES_MAX: usize = 10_000;
/// In the place of an address that nobody knows, or for which there is no room.
const ANYBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Wrong keys, by where they came from.
#[derive(Default)]
pub(super) struct LoginThrottle(Lock<HashMap<IpAddr, FailedLogins>>);

struct FailedLogins {
    count: u32,
    since: Tick,
}

impl LoginThrottle {
    /// For how long this address has to wait, if it does.
    pub(super) fn wait(&self, address: Option<IpAddr>, now: Tick) -> Option<Duration> {
        let known = self.0.lock();
        let address = network(address);
        let wrong =
            known.get(&address).or_else(|| known.get(&ANYBODY).filter(|_| known.len() >= ADDRESSES_MAX))?;
        let left = WITHIN.checked_sub(now.since(wrong.since)).filter(|left| !left.is_zero());
        left.filter(|_| wrong.count >= WRONG_MAX)
    }

    /// A wrong key came from this address.
    pub(super) fn wrong(&self, address: Option<IpAddr>, now: Tick) {
        let mut known = self.0.lock();
        let mut address = network(address);
        if known.len() >= ADDRESSES_MAX && !known.contains_key(&address) {
            known.retain(|_, wrong| now.since(wrong.since) < WITHIN);
            if known.len() >= ADDRESSES_MAX {
                address = ANYBODY;
            }
        }
        let wrong = known.entry(address).or_insert(FailedLogins { count: 0, since: now });
        if now.since(wrong.since) >= WITHIN {
            *wrong = FailedLogins { count: 0, since: now };
        }
        wrong.count += 1;
    }
}

/// An IPv6 client owns its whole network, so the network is counted.
fn network(address: Option<IpAddr>) -> IpAddr {
    match address {
        None => ANYBODY,
        Some(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
            Some(address) => address.into(),
            None => Ipv6Addr::from(u128::from(address) & !u128::from(u64::MAX)).into(),
        },
        Some(address) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC-1: ten wrong keys a minute, for each address; others do not wait for it.
    #[test]
    fn sec_1_wrong_keys_are_counted_by_address() {
        let (throttle, began) = (LoginThrottle::default(), seawall::Clock::system().now());
        let address = |text: &str| Some(text.parse().unwrap());
        let (bad, same, good) = (address("2001:db8::1"), address("2001:db8::ffff"), address("192.0.2.1"));
        for _ in 0..WRONG_MAX {
            assert_eq!(throttle.wait(same, began), None);
            throttle.wrong(bad, began);
        }
        assert_eq!(throttle.wait(same, began + Duration::from_secs(20)), Some(Duration::from_secs(40)));
        assert_eq!(throttle.wait(good, began), None);
        assert_eq!(throttle.wait(bad, began + WITHIN), None);
        throttle.wrong(bad, began + WITHIN);
        assert_eq!(throttle.wait(bad, began + WITHIN), None, "it begins anew");
        for number in 0..20_000_u32 {
            throttle.wrong(Some(IpAddr::V4(number.into())), began + WITHIN);
        }
        assert!(throttle.0.lock().len() <= ADDRESSES_MAX + 1);
        assert!(
            throttle.wait(good, began + WITHIN).is_some(),
            "those for whom there is no room wait together"
        );
    }
}
