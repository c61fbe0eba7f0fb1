use api::{HostVolumeRegisterRequest, HostVolumeStub};
use model::document::HostVolume;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// The answer to a volume that is made or registered.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HostVolumeAnswer {
    pub volume: HostVolume,
    pub warnings: String,
}

/// Host volumes that were made on nodes.
impl Client {
    /// `PUT /v1/volume/host/create`.
    pub async fn create_host_volume(&self, volume: &HostVolume) -> Result<HostVolumeAnswer, Error> {
        self.put_host_volume("/v1/volume/host/create", volume).await
    }

    /// `PUT /v1/volume/host/register`.
    pub async fn register_host_volume(&self, volume: &HostVolume) -> Result<HostVolumeAnswer, Error> {
        self.put_host_volume("/v1/volume/host/register", volume).await
    }

    async fn put_host_volume(&self, path: &str, volume: &HostVolume) -> Result<HostVolumeAnswer, Error> {
        let request = HostVolumeRegisterRequest { volume: Some(volume.clone()), policy_override: false };
        Ok(self.put(path, Query::new(), &request).await?.value)
    }

    /// `GET /v1/volumes?type=host`.
    pub async fn host_volumes(&self, query: Query) -> Result<Answer<Vec<HostVolumeStub>>, Error> {
        self.get("/v1/volumes", query.with("type", "host")).await
    }

    /// `GET /v1/volume/host/:id`, whole.
    pub async fn host_volume(&self, id: &str) -> Result<Value, Error> {
        Ok(self.get(&format!("/v1/volume/host/{}", segment(id)), Query::new()).await?.value)
    }

    /// `DELETE /v1/volume/host/:id`.
    pub async fn delete_host_volume(&self, id: &str, force: bool) -> Result<(), Error> {
        let path = format!("/v1/volume/host/{}", segment(id));
        self.send(self.request(Method::DELETE, &path, Query::new().with("force", force))).await.map(drop)
    }
}
