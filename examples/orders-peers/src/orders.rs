//! Placing an order.

use serde::{Deserialize, Serialize};

use crate::App;
use crate::routes::ApiError;

#[derive(Deserialize)]
pub struct NewOrder {
    /// The number that the buyer's side gave it.
    pub order: String,
    pub sku: String,
    pub quantity: u32,
}

#[derive(Serialize)]
pub struct PlacedOrder {
    pub order: String,
    pub product: String,
    pub cents: u64,
    /// The last good price was charged, because nobody knew the current one.
    pub stale_price: bool,
    pub receipt: String,
}

/// Looks at product, stock and price, and charges the buyer.
pub async fn place(app: &App, new: NewOrder) -> Result<PlacedOrder, ApiError> {
    let NewOrder { order, sku, quantity } = new;
    let unknown = || ApiError::not_found(format!("no product `{sku}`"));
    let product = app.catalogue.product(&sku).await?.ok_or_else(unknown)?;
    let (stock, price) = tokio::join!(app.inventory.stock(&sku), app.prices.price(&sku));
    let (stock, price) = (stock?.ok_or_else(unknown)?, price?.ok_or_else(unknown)?);
    if stock.stock < quantity {
        return Err(ApiError::conflict(format!("{} of `{sku}` left", stock.stock)));
    }
    let cents = price.cents * u64::from(quantity);
    let receipt = app.payments.charge(&order, cents).await?.receipt;
    Ok(PlacedOrder { order, product: product.name, cents, stale_price: price.stale, receipt })
}
