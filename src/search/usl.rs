//! The Universal Scalability Law: throughput over N by contention and coherency (Gunther).
//!
//! `X(N) = λN / (1 + σ(N − 1) + κN(N − 1))`. Divided into N it is linear in 1/λ, σ/λ and κ/λ, so that a least-squares fit needs no
//! iteration: each point is weighted such that relative errors of X count alike. Coefficients below zero mean nothing; the best
//! fit without them is taken instead.

/// One measured level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Clients, connections, ... at least 1.
    pub n: f64,
    /// Throughput, above zero.
    pub x: f64,
}

/// A fitted law. It says nothing outside of the levels that were tested.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Usl {
    /// Throughput of one.
    pub lambda: f64,
    /// Contention: the share of work that only one can do at a time.
    pub sigma: f64,
    /// Coherency: what every pair costs.
    pub kappa: f64,
    /// Root mean square of the relative errors.
    pub error: f64,
    /// The lowest level that was tested.
    from: f64,
    /// The highest.
    to: f64,
}

/// Fewer levels determine nothing.
const FEWEST: usize = 4;
/// Beyond this relative error the law is not what the server does.
const WORST: f64 = 0.25;

impl Usl {
    /// Fits the law. `None` if fewer than four different levels were measured, or if it does not describe them.
    pub fn fit(points: &[Point]) -> Option<Self> {
        let usable = |point: &&Point| point.n >= 1.0 && point.x > 0.0 && point.n.is_finite() && point.x.is_finite();
        let points: Vec<Point> = points.iter().filter(usable).copied().collect();
        let mut levels: Vec<f64> = points.iter().map(|point| point.n).collect();
        levels.sort_by(f64::total_cmp);
        levels.dedup();
        let (from, to) = (*levels.first()?, *levels.last()?);
        if levels.len() < FEWEST {
            return None;
        }
        // Every choice of coefficients that may differ from zero; 1/λ always does.
        let fits = [[true, true, true], [true, true, false], [true, false, true], [true, false, false]];
        let fits = fits.iter().filter_map(|free| Self::with(&points, *free, from, to));
        fits.min_by(|a, b| a.error.total_cmp(&b.error)).filter(|fit| fit.error <= WORST)
    }

    fn with(points: &[Point], free: [bool; 3], from: f64, to: f64) -> Option<Self> {
        let [scale, contention, coherency] = solve(points, free)?;
        if scale <= 0.0 || contention < 0.0 || coherency < 0.0 {
            return None;
        }
        let (lambda, sigma, kappa) = (1.0 / scale, contention / scale, coherency / scale);
        let mut fit = Self { lambda, sigma, kappa, error: 0.0, from, to };
        let squares = points.iter().map(|point| (fit.law(point.n) / point.x - 1.0).powi(2));
        fit.error = (squares.sum::<f64>() / points.len() as f64).sqrt();
        fit.error.is_finite().then_some(fit)
    }

    /// Throughput at `n`; `None` outside of the levels that were tested.
    pub fn at(&self, n: f64) -> Option<f64> {
        (self.from..=self.to).contains(&n).then(|| self.law(n))
    }

    /// The level with the highest throughput; `None` if that is outside of the levels that were tested.
    pub fn peak(&self) -> Option<f64> {
        let peak = ((1.0 - self.sigma) / self.kappa).sqrt();
        (self.from..=self.to).contains(&peak).then_some(peak)
    }

    fn law(&self, n: f64) -> f64 {
        self.lambda * n / (1.0 + self.sigma * (n - 1.0) + self.kappa * n * (n - 1.0))
    }
}

/// Weighted least squares of `1 = (x/n)·(a + b(n − 1) + cn(n − 1))`, coefficients that are not free held at zero.
fn solve(points: &[Point], free: [bool; 3]) -> Option<[f64; 3]> {
    let mut sums = [[0.0; 4]; 3];
    for &Point { n, x } in points {
        let weight = x / n;
        let row = [weight, weight * (n - 1.0), weight * n * (n - 1.0)];
        for (i, sum) in sums.iter_mut().enumerate() {
            for (j, column) in row.iter().enumerate() {
                sum[j] += row[i] * column;
            }
            sum[3] += row[i];
        }
    }
    for (i, free) in free.iter().enumerate() {
        if !free {
            sums.iter_mut().for_each(|sum| sum[i] = 0.0);
            sums[i] = [0.0; 4];
            sums[i][i] = 1.0;
        }
    }
    eliminate(sums)
}

/// Gauss-Jordan with the largest pivot; `None` if the equations do not determine the unknowns.
fn eliminate(mut rows: [[f64; 4]; 3]) -> Option<[f64; 3]> {
    // The columns differ by orders of magnitude; scaled, a pivot can be told from rounding.
    let scale: Vec<f64> = (0..3).map(|i| rows[i][i].sqrt()).collect();
    if scale.iter().any(|scale| *scale <= 0.0 || !scale.is_finite()) {
        return None;
    }
    for (i, row) in rows.iter_mut().enumerate() {
        row.iter_mut().zip(&scale).for_each(|(cell, column)| *cell /= column * scale[i]);
        row[3] /= scale[i];
    }
    for column in 0..3 {
        let largest = (column..3).max_by(|a, b| rows[*a][column].abs().total_cmp(&rows[*b][column].abs()))?;
        if rows[largest][column].abs() < 1e-12 {
            return None;
        }
        rows.swap(column, largest);
        let pivot = rows[column];
        for (i, row) in rows.iter_mut().enumerate() {
            let factor = if i == column { 1.0 - 1.0 / pivot[column] } else { row[column] / pivot[column] };
            row.iter_mut().zip(&pivot).for_each(|(cell, above)| *cell -= factor * above);
        }
    }
    Some([0, 1, 2].map(|i| rows[i][3] / scale[i]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn law(lambda: f64, sigma: f64, kappa: f64) -> Vec<Point> {
        let x = |n: f64| lambda * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0));
        [1.0, 2.0, 4.0, 8.0, 16.0, 24.0, 32.0].map(|n| Point { n, x: x(n) }).to_vec()
    }

    #[test]
    fn what_follows_the_law_is_found_again() {
        let fit = Usl::fit(&law(1000.0, 0.05, 0.002)).expect("a fit");
        assert!((fit.lambda / 1000.0 - 1.0).abs() < 1e-6, "{fit:?}");
        assert!((fit.sigma - 0.05).abs() < 1e-6 && (fit.kappa - 0.002).abs() < 1e-6, "{fit:?}");
        assert!((fit.peak().expect("within") - (0.95f64 / 0.002).sqrt()).abs() < 1e-3);
        assert!(fit.at(12.0).is_some());
    }

    #[test]
    fn nothing_is_said_outside_of_what_was_tested() {
        let fit = Usl::fit(&law(1000.0, 0.01, 0.000_01)).expect("a fit");
        assert_eq!((fit.at(33.0), fit.at(0.5), fit.peak()), (None, None, None));
    }

    #[test]
    fn few_levels_or_none_of_the_kind_give_no_fit() {
        assert_eq!(Usl::fit(&law(1000.0, 0.0, 0.0)[..3]), None);
        assert_eq!(Usl::fit(&[]), None);
        let same = [Point { n: 4.0, x: 10.0 }; 9];
        assert_eq!(Usl::fit(&same), None);
        let wild: Vec<_> = (1..9).map(|n| Point { n: n.into(), x: if n % 2 == 0 { 1.0 } else { 100.0 } }).collect();
        assert_eq!(Usl::fit(&wild), None);
    }

    proptest! {
        #[test]
        fn no_coefficient_is_ever_below_zero(points in prop::collection::vec((1u32..200, 1.0f64..1e6), 4..20)) {
            let points: Vec<_> = points.iter().map(|(n, x)| Point { n: f64::from(*n), x: *x }).collect();
            if let Some(fit) = Usl::fit(&points) {
                prop_assert!(fit.lambda > 0.0 && fit.sigma >= 0.0 && fit.kappa >= 0.0, "{fit:?}");
            }
        }

        #[test]
        fn a_noisy_law_is_found_about(sigma in 0.0f64..0.3, kappa in 0.0f64..0.01, noise in prop::collection::vec(-0.02f64..0.02, 7)) {
            let mut points = law(500.0, sigma, kappa);
            points.iter_mut().zip(&noise).for_each(|(point, noise)| point.x *= 1.0 + noise);
            let fit = Usl::fit(&points).expect("a fit");
            prop_assert!(fit.error < 0.03, "{fit:?}");
        }
    }
}
