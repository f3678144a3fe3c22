//! The sample services of a demo, with their switches, and what to try with them.

use minijinja::context;

use crate::dashboard::PageResult;
use crate::dashboard::context::PageContext;

/// A hub that is none of a demo has no such page, because its API has no such routes.
pub(super) async fn page(page: PageContext) -> PageResult {
    let upstreams = page.view("/api/v1/demo/upstreams").await?;
    let story = page.view("/api/v1/demo/story").await?;
    page.page("demo.html", context! { upstreams, story }).await
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    use axum::Router;
    use axum::body::{Body, to_bytes};
    use axum::http::{Request, header};
    use serde_json::json;
    use tempfile::TempDir;
    use tower_service::Service;

    use crate::dashboard::Dashboard;
    use crate::demo::{DemoServices, SampleState};
    use crate::{Server, StartOptions, http};

    const ADMIN: &str = "the-admin-key-of-the-test";

    struct Pages {
        _folder: TempDir,
        router: Router,
        demo: Option<Arc<DemoServices>>,
    }

    impl Pages {
        async fn of(demo: Option<DemoServices>) -> Self {
            let (folder, demo) = (TempDir::new().unwrap(), demo.map(Arc::new));
            let options = StartOptions { demo: demo.clone(), ..StartOptions::default() };
            let hub = Arc::new(Server::open(folder.path(), &options).await.unwrap());
            hub.registry.set_admin_key(&hub.own_context(), http::key_hash(ADMIN)).await.unwrap();
            if let Some(demo) = &demo {
                demo.register(&hub, ADMIN).await.unwrap();
            }
            let router = Dashboard::beside(http::api(hub.clone()), hub, Arc::new(AtomicBool::new(false)));
            Pages { _folder: folder, router, demo }
        }

        async fn send(
            &mut self,
            method: &str,
            path: &str,
            more: (&str, &str),
            body: String,
        ) -> (u16, String, String) {
            let request = Request::builder().method(method).uri(path).header(more.0, more.1);
            let response = self.router.call(request.body(Body::from(body)).unwrap()).await.unwrap();
            let header = |name| response.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
            let said = header(header::SET_COOKIE).or_else(|| header(header::LOCATION)).unwrap_or_default();
            let status = response.status().as_u16();
            let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            (status, said, String::from_utf8_lossy(&bytes).into_owned())
        }

        async fn login(&mut self, key: &str) -> String {
            let (status, cookie, _) =
                self.send("POST", "/login", ("accept", "*/*"), format!("key={key}")).await;
            assert_eq!(status, 303);
            cookie.split(';').next().unwrap().to_owned()
        }

        async fn page(&mut self, path: &str, cookie: &str) -> (u16, String) {
            let (status, _, text) = self.send("GET", path, ("cookie", cookie), String::new()).await;
            (status, text)
        }
    }

    /// HUB-11, UI-1: a card for each sample service, with its mood, its circuit and the buttons that it has no use for left out;
    /// whoever may only read sees no button, and whoever is not logged in nothing.
    #[tokio::test]
    async fn hub_11_the_page_shows_every_sample_service() {
        let mut pages = Pages::of(Some(DemoServices::open().await.unwrap())).await;
        let cookie = pages.login(ADMIN).await;
        let (status, page) = pages.page("/demo", &cookie).await;
        assert_eq!(status, 200, "{page}");
        for name in ["payments", "mail", "search", "crm", "warehouse"] {
            assert!(page.contains(&format!("id=\"state-{name}\"")), "{name}");
            assert!(page.contains(&format!("/api/v1/demo/upstreams/{name}:set")), "{name}");
        }
        assert!(page.contains("aria-current=\"page\">Demo</a>") && !page.contains("Restore<span"), "{page}");
        assert!(page.contains("{{ 'GB' if data.country =="), "what to write is shown as it is written");
        pages.demo.as_ref().unwrap().upstream("warehouse").unwrap().feel(SampleState::Down);
        let (_, page) = pages.page("/demo", &cookie).await;
        assert_eq!((page.matches("Restore<span").count(), page.matches("Unplug<span").count()), (1, 4));

        let reader = json!({"name": "reader", "scopes": ["read"]}).to_string();
        let bearer = format!("Bearer {ADMIN}");
        let (_, _, made) =
            pages.send("POST", "/api/v1/registry/keys", ("authorization", &bearer), reader).await;
        let made: serde_json::Value = serde_json::from_str(&made).unwrap();
        let cookie = pages.login(made["data"]["key"].as_str().unwrap()).await;
        let (status, page) = pages.page("/demo", &cookie).await;
        assert!(status == 200 && page.contains("state-warehouse") && !page.contains(":set"), "{page}");
        let (status, to, _) = pages.send("GET", "/demo", ("cookie", "none=1"), String::new()).await;
        assert_eq!((status, &*to), (303, "/login?to=%2Fdemo"));
    }

    /// HUB-11: a hub that is no demo has neither the page nor the way to it.
    #[tokio::test]
    async fn hub_11_a_hub_that_is_no_demo_has_no_such_page() {
        let mut pages = Pages::of(None).await;
        let cookie = pages.login(ADMIN).await;
        assert_eq!(pages.page("/demo", &cookie).await.0, 404);
        let (status, overview) = pages.page("/", &cookie).await;
        assert!(status == 200 && !overview.contains("/demo"), "{overview}");
    }
}
