//! The two regions that know stock and prices: the first is asked, and the second when the first fails.

use reqwest::Client;
use serde::de::DeserializeOwned;

use crate::guard::{CallError, Guard};
use crate::upstream;

/// What reads of both kinds share: a region that stock reads have found dead is not asked for prices either.
#[derive(Clone)]
pub struct Regions {
    client: Client,
    pub first: Region,
    pub second: Region,
}

#[derive(Clone)]
pub struct Region {
    pub name: &'static str,
    url: String,
    pub guard: Guard,
}

impl Regions {
    pub fn new(client: &Client, [east, west]: [String; 2]) -> Self {
        let region = |name, url| Region { name, url, guard: Guard::standard() };
        Regions { client: client.clone(), first: region("east", east), second: region("west", west) }
    }

    /// Reads from the first region, or from the second when the first fails, and says from which. The first is not asked
    /// twice: there is another one.
    pub async fn read<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<(Option<T>, &'static str), CallError> {
        let Regions { first, second, .. } = self;
        match first.guard.attempt(self.get(first, path)).await {
            Ok(value) => Ok((value, first.name)),
            Err(error) if error.is_outage() => {
                Ok((second.guard.call(|| self.get(second, path)).await?, second.name))
            }
            Err(error) => Err(error),
        }
    }

    /// Asks one region once.
    pub async fn get<T: DeserializeOwned>(&self, region: &Region, path: &str) -> reqwest::Result<Option<T>> {
        upstream::get(&self.client, format!("{}{path}", region.url)).await
    }
}
