//! Job files and agent configuration: any text is a job or an error, and a job stays canonical.
#![no_main]

use jobspec::{NoFiles, Source, Variables, canonicalize, config, imply_constraints, parse, validate};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let source = Source::new("j.hcl", text);
    let _ = config::Section::parse(&source);
    let Ok(parsed) = parse(&source, &Variables::default(), &NoFiles) else { return };
    let mut job = parsed.job;
    canonicalize(&mut job);
    imply_constraints(&mut job);
    let mut again = job.clone();
    canonicalize(&mut again);
    imply_constraints(&mut again);
    assert_eq!(again, job);
    let _ = validate(&job);
});
