//! The files that pages need beside their HTML. They are part of the program.

use axum::extract::Path;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

const FILES: [(&str, &str, &str); 5] = [
    ("icon.svg", "image/svg+xml", include_str!("../assets/icon.svg")),
    ("style.css", "text/css; charset=utf-8", include_str!("../assets/style.css")),
    ("pages.css", "text/css; charset=utf-8", include_str!("../assets/pages.css")),
    ("theme.js", "text/javascript; charset=utf-8", include_str!("../assets/theme.js")),
    ("pages.js", "text/javascript; charset=utf-8", include_str!("../assets/pages.js")),
];

/// `GET /assets/NAME`
pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    match FILES.iter().find(|(file, ..)| *file == name) {
        Some((_, kind, text)) => {
            let headers = [
                (CONTENT_TYPE, HeaderValue::from_static(kind)),
                // The address has the version in it.
                (CACHE_CONTROL, HeaderValue::from_static("private, max-age=86400")),
            ];
            (headers, *text).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
