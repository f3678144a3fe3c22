//! Ranges of addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of addresses, written like `10.0.0.0/8`, `fd00::/8`, or one address.
///
/// ```
/// # use seawall_http::egress::Cidr;
/// let office: Cidr = "10.1.0.0/16".parse()?;
/// assert!(office.contains("10.1.2.3".parse()?));
/// assert!("10.1.0.0/33".parse::<Cidr>().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cidr {
    network: IpAddr,
    bits: u8,
}

impl Cidr {
    pub(super) const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Self {
        Cidr { network: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
    }

    pub(super) const fn v6(head: [u16; 4], bits: u8) -> Self {
        let [a, b, c, d] = head;
        Cidr { network: IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0)), bits }
    }

    /// Whether the address lies in it. An IPv4 address never lies in a range of IPv6 ones, nor the other way round.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.network, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differ = u32::from(network) ^ u32::from(address);
                differ.checked_shr(32 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differ = u128::from(network) ^ u128::from(address);
                differ.checked_shr(128 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

impl FromStr for Cidr {
    type Err = BadCidr;

    fn from_str(text: &str) -> Result<Self, BadCidr> {
        let bad = || BadCidr(text.into());
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let network: IpAddr = address.trim().parse().map_err(|_| bad())?;
        let most = if network.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| bits.trim().parse().map_err(|_| bad()))?;
        if bits > most {
            return Err(bad());
        }
        Ok(Cidr { network, bits })
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.network, self.bits)
    }
}

impl fmt::Debug for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A range of addresses that can't be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BadCidr(Box<str>);

impl fmt::Display for BadCidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is no range of addresses; write `10.0.0.0/8`, `fd00::/8` or one address", self.0)
    }
}

impl std::error::Error for BadCidr {}
