use model::document::List;
use reqwest::Method;
use serde::{Deserialize, Serialize};

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// The services of one namespace: `ServiceRegistrationListStub` of Nomad's API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct NamespaceServices {
    pub namespace: String,
    pub services: List<ServiceStub>,
}

/// A service by its name, and the tags of all its instances.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceStub {
    pub service_name: String,
    pub tags: List<String>,
}

/// One instance of a service: `ServiceRegistration` of Nomad's API.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ServiceInstance {
    #[serde(rename = "ID")]
    pub id: String,
    pub service_name: String,
    pub namespace: String,
    #[serde(rename = "NodeID")]
    pub node_id: String,
    pub datacenter: String,
    #[serde(rename = "JobID")]
    pub job_id: String,
    #[serde(rename = "AllocID")]
    pub alloc_id: String,
    pub tags: List<String>,
    pub address: String,
    pub port: i64,
    pub create_index: u64,
    pub modify_index: u64,
}

/// Services that the cluster itself keeps.
impl Client {
    /// `GET /v1/services`: by namespace.
    pub async fn services(&self, query: Query) -> Result<Answer<Vec<NamespaceServices>>, Error> {
        self.get("/v1/services", query).await
    }

    /// `GET /v1/service/:name`: its instances; takes `filter` and paging.
    pub async fn service(&self, name: &str, query: Query) -> Result<Answer<Vec<ServiceInstance>>, Error> {
        self.get(&format!("/v1/service/{}", segment(name)), query).await
    }

    /// `DELETE /v1/service/:name/:id`.
    pub async fn delete_service(&self, name: &str, id: &str) -> Result<(), Error> {
        let path = format!("/v1/service/{}/{}", segment(name), segment(id));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }
}
