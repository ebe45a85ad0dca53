//! Offloaded data by its signed address.

use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Shared;
use super::problem::{Kind, Problem};

/// The data of one event; the token in the address is the permission.
#[utoipa::path(get, path = "/v1/blobs/{token}", tag = "events", params(("token" = String, Path)),
    responses((status = 200), (status = 404)))]
pub(super) async fn fetch(
    State(api): Shared,
    Path(token): Path<String>,
) -> Result<Response, Problem> {
    let gone = || Problem::new(Kind::NotFound, "the address is wrong or has expired");
    let seq = api.deliveries.linked(&token).ok_or_else(gone)?;
    let stored = api.store.events(vec![seq]).await?.pop().ok_or_else(gone)?;
    let event = api.deliveries.whole(&stored).await?.ok_or_else(gone)?;
    let media_type = event
        .datacontenttype()
        .unwrap_or("application/octet-stream")
        .to_owned();
    let headers = [
        (header::CONTENT_TYPE, media_type),
        (header::CACHE_CONTROL, "private, max-age=3600".to_owned()),
        // The data is a producer's; a browser must not take it for a page of ours.
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
        (header::CONTENT_SECURITY_POLICY, "sandbox".to_owned()),
    ];
    Ok((StatusCode::OK, headers, event.data_bytes().clone()).into_response())
}
