//! Jobs in JSON, in the API's form and in HCL's: what is printed is read as the same job.
#![no_main]

use jobspec::{NoFiles, Source, Variables, client_form, parse_json};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let read = |text: &str| parse_json(&Source::new("j.json", text), &Variables::default(), &NoFiles);
    let Ok(parsed) = read(text) else { return };
    let printed = client_form(&parsed.job).to_string();
    assert_eq!(read(&printed).expect("a printed job is read").job, parsed.job);
});
