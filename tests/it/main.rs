//! keyswarm from outside: the built program against real and scripted servers, one file per subject.
//!
//! `run`, `scenario`, `server`, `scripted`, `certificates`, `resp`, `process` and `moment` are what the tests stand on; every
//! other module is a subject. Tests run in parallel on free ports and private folders, wait for states and never for
//! time alone, and end only what they started.

mod certificates;
mod moment;
mod process;
mod resp;
mod run;
mod scenario;
mod scripted;
mod server;

mod bad_input;
mod batches;
mod bottleneck;
mod builtin;
mod cases;
mod churn;
mod connecting;
mod guards;
mod hashes_and_expiry;
mod hostile_replies;
mod limit;
mod main_job;
mod memory_full;
mod mix;
mod open_loop;
mod output;
mod permissions;
mod screens;
mod secrets;
mod server_trouble;
mod shipped;
mod signals;
mod spawning;
mod tampering;
mod tidy;
mod tls;
mod unawaited;
mod values;
mod versions;

/// Makes two tests, `NAME::socket` and `NAME::fred`, of each function that takes a driver's name.
macro_rules! for_both_drivers {
    ($($name:ident),+ $(,)?) => {
        $(mod $name {
            #[test]
            fn socket() {
                super::$name("socket");
            }

            #[test]
            fn fred() {
                super::$name("fred");
            }
        })+
    };
}
use for_both_drivers;
