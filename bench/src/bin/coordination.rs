//! Coordination on real servers, beside its peers. See README.md.

use std::error::Error;

use seawall_bench::coordination;

fn main() -> Result<(), Box<dyn Error>> {
    let part = std::env::args().nth(1);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let is_wanted = |name: &str| part.as_deref().is_none_or(|part| part == name);
    runtime.block_on(async {
        if is_wanted("lock") {
            coordination::lock::run().await?;
        }
        Ok(())
    })
}
