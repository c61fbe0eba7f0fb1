//! What templates read, as calls with the token of their task.

use std::time::Duration;

use api::{ServiceRegistration, ServiceRegistrationListStub, Variable, VariableMetadata};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use template::{Dependency, Place};
use wire::messages::{
    DataResponse, ListRequest, QueryOptions, ServiceGetRequest, ServicesResponse, VariableReadRequest, method,
};

use super::{ANSWER_WITHIN, WireServers};
use crate::server::{ServerError, TemplateRead};

pub(super) async fn read(
    servers: &WireServers,
    read: &TemplateRead,
) -> Result<(Option<Value>, u64), ServerError> {
    let within = read.wait + read.wait / 16 + ANSWER_WITHIN;
    match &read.dependency {
        Dependency::Variable { path, place } => {
            let request = VariableReadRequest { path: path.clone(), query: query(servers, read, place) };
            data::<Variable>(servers, method::VARIABLES_READ, &request, within).await
        }
        Dependency::Variables { prefix, place } => {
            let query = QueryOptions { prefix: prefix.clone(), ..query(servers, read, place) };
            let request = ListRequest { query };
            data::<Vec<VariableMetadata>>(servers, method::VARIABLES_LIST, &request, within).await
        }
        Dependency::Service { name, choose, place } => {
            let choose = choose.as_ref().map(|(count, key)| format!("{count}|{key}"));
            let request = ServiceGetRequest {
                service_name: name.clone(),
                choose: choose.unwrap_or_default(),
                query: query(servers, read, place),
            };
            services::<ServiceRegistration>(servers, method::SERVICE_GET, &request, within).await
        }
        Dependency::Consul(_) | Dependency::Vault(_) => {
            Err(ServerError::Refused("the servers do not answer for Consul".to_string()))
        }
        Dependency::Services { place } => {
            let request = ListRequest { query: query(servers, read, place) };
            services::<ServiceRegistrationListStub>(servers, method::SERVICE_LIST, &request, within).await
        }
    }
}

fn query(servers: &WireServers, read: &TemplateRead, place: &Place) -> QueryOptions {
    QueryOptions {
        region: place.region.clone().unwrap_or_else(|| servers.region.clone()),
        namespace: place.namespace.clone().unwrap_or_else(|| read.namespace.clone()),
        min_query_index: read.min_index,
        max_query_time: base::Duration::from(read.wait).into(),
        allow_stale: true,
        auth_token: read.token.clone().unwrap_or_else(|| servers.token()),
        ..QueryOptions::default()
    }
}

async fn data<T: Serialize + DeserializeOwned + Default>(
    servers: &WireServers,
    method: &str,
    request: &(impl Serialize + Sync),
    within: Duration,
) -> Result<(Option<Value>, u64), ServerError> {
    let answer: DataResponse<T> = servers.call(method, request, within).await?;
    Ok((answer.data.map(|data| as_json(&data)).transpose()?, answer.meta.index))
}

async fn services<T: Serialize + DeserializeOwned + Default + Clone>(
    servers: &WireServers,
    method: &str,
    request: &(impl Serialize + Sync),
    within: Duration,
) -> Result<(Option<Value>, u64), ServerError> {
    let answer: ServicesResponse<T> = servers.call(method, request, within).await?;
    Ok((Some(as_json(&answer.services)?), answer.meta.index))
}

fn as_json(value: &impl Serialize) -> Result<Value, ServerError> {
    serde_json::to_value(value).map_err(|error| ServerError::Refused(error.to_string()))
}
