use api::Namespace;
use reqwest::Method;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Namespaces, by their names.
impl Client {
    /// `GET /v1/namespaces`: takes `prefix`.
    pub async fn namespaces(&self, query: Query) -> Result<Answer<Vec<Namespace>>, Error> {
        self.get("/v1/namespaces", query).await
    }

    /// `GET /v1/namespace/:name`.
    pub async fn namespace_named(&self, name: &str) -> Result<Namespace, Error> {
        Ok(self.get(&format!("/v1/namespace/{}", segment(name)), Query::new()).await?.value)
    }

    /// `PUT /v1/namespace`: makes it, or changes it.
    pub async fn apply_namespace(&self, namespace: &Namespace) -> Result<(), Error> {
        let request = self.request(Method::PUT, "/v1/namespace", Query::new());
        self.send(request.json(namespace)).await.map(drop)
    }

    /// `DELETE /v1/namespace/:name`.
    pub async fn delete_namespace(&self, name: &str) -> Result<(), Error> {
        let path = format!("/v1/namespace/{}", segment(name));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }
}
