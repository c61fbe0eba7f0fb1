//! What real agents re-execute their own program for, and nothing else, for the tests of this crate.

fn main() -> std::process::ExitCode {
    if std::env::args().nth(1).as_deref() == Some(artifact::SUBCOMMAND) {
        return artifact::main();
    }
    executor::main(std::env::args().skip(2))
}
