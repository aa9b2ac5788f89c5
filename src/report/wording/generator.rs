//! The words for a generator that was itself the bottleneck, and for what shows it.

use crate::report::format::rate;
use crate::verdict::{PhaseBound, Pressure, Sign};

/// What was so, and what to do about it.
pub fn bound(phase: &PhaseBound) -> String {
    let signs: Vec<String> = phase.signs.iter().map(sign).collect();
    let server = phase.server.map(|server| format!(", while the server's main thread used {server:.2} s/s"));
    format!(
        "keyswarm itself was the bottleneck in {}: {}{}. Its rates and latencies are its own, not the server's. {}",
        phase.phase,
        signs.join("; "),
        server.unwrap_or_default(),
        advice(phase)
    )
}

/// One sign, with its numbers.
pub fn sign(sign: &Sign) -> String {
    match sign {
        Sign::Pressed(pressure) => format!("a loading thread {}", pressed(pressure)),
        Sign::NearCeiling { achieved, ceiling } => {
            format!("it achieved {} of the {} that it manages by itself", rate(*achieved), rate(*ceiling))
        }
        Sign::SendLag { lag, limit } => {
            format!("requests were sent {:.1} ms late (limit {:.1} ms)", ms(*lag), ms(*limit))
        }
    }
}

/// "was busy for 0.10 s/s and waited for a core for 0.86 s/s".
pub fn pressed(pressure: &Pressure) -> String {
    let &Pressure { busy, waiting, throttled } = pressure;
    let mut text = format!("was busy for {busy:.2} s/s");
    if waiting >= 0.01 {
        text.push_str(&format!(", waiting for a core for {waiting:.2} s/s"));
    }
    // Most kernels count time that a quota took as waiting, too.
    if throttled >= 0.01 && waiting >= throttled {
        text.push_str(&format!(" (of that, kept off by a CPU quota for {throttled:.2})"));
    } else if throttled >= 0.01 {
        text.push_str(&format!(", kept off by a CPU quota for {throttled:.2} s/s"));
    }
    text
}

fn ms(time: std::time::Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn advice(phase: &PhaseBound) -> &'static str {
    let pressure = phase.signs.iter().find_map(|sign| match sign {
        Sign::Pressed(pressure) => Some(pressure),
        Sign::NearCeiling { .. } | Sign::SendLag { .. } => None,
    });
    match pressure {
        Some(pressure) if pressure.throttled > 0.1 => "Give it more CPU: its quota is too small.",
        Some(pressure) if pressure.waiting > 0.1 => "Give it a core of its own (`clients.cpus`).",
        _ => {
            "Give it more `threads` on a machine with more cores, a deeper pipeline, or, if it is fred, the driver `socket`."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_generator_is_told_with_numbers_and_advice() {
        let pressure = Pressure { busy: 0.1, waiting: 0.86, throttled: 0.0 };
        let sign = Sign::Pressed(pressure);
        let phase = PhaseBound { phase: "write".into(), server: Some(0.2), signs: vec![sign], ..PhaseBound::default() };
        insta::assert_snapshot!(bound(&phase), @"keyswarm itself was the bottleneck in write: a loading thread was busy for 0.10 s/s, waiting for a core for 0.86 s/s, while the server's main thread used 0.20 s/s. Its rates and latencies are its own, not the server's. Give it a core of its own (`clients.cpus`).");
        let sign = Sign::Pressed(Pressure { throttled: 0.9, waiting: 0.9, ..pressure });
        let text = bound(&PhaseBound { signs: vec![sign], ..phase.clone() });
        assert!(
            text.contains("0.90 s/s (of that, kept off by a CPU quota for 0.90)")
                && text.ends_with("its quota is too small."),
            "{text}"
        );
        let sign = Sign::NearCeiling { achieved: 90_000.0, ceiling: 100_000.0 };
        let text = bound(&PhaseBound { signs: vec![sign], ..phase });
        assert!(text.contains("90 k/s of the 100 k/s") && text.contains("socket"), "{text}");
    }
}
