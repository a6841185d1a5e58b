//! The files of a calibrated drive are accepted, and describe the drive of the fit.

use crate::synthetic::{Workload, drive};
use frit_calibrate::{Calibration, FitOptions, Parameter, profile_text, stack_text};
use frit_media::Profile;
use frit_stack::Stack;

#[test]
fn the_profile_and_the_stack_are_accepted() {
    let w = Workload { requests: 600, pages_max: 32, gap_us: 30_000.0, depth: 4, noise: 0.05 };
    let truth = [(Parameter::TProg, 1_500_000_000), (Parameter::Units, 2), (Parameter::ReadUs, 120)];
    let (model, sample, _) = drive("tlc-pages-2018", &truth, &w);
    let options = FitOptions { evaluations: 1500, ..FitOptions::default() };
    let c = Calibration::run(&model, &sample, &options, &mut |_| {}).unwrap();
    let text = profile_text(&model, &c, "mine");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("mine.toml");
    std::fs::write(&path, &text).unwrap();
    let profile = Profile::load(&path).unwrap();
    let rows = profile.rows();
    let hash = sample.identity.sha256.clone().unwrap();
    for row in &rows {
        assert!(row.key == "profile" || row.source.contains(&hash), "{text}");
        assert!(row.key == "profile" || row.source.contains("held out: RMS"), "{text}");
    }
    assert!(rows.iter().any(|r| r.key == "chips_per_channel" || r.key == "channels"), "{text}");
    // A stack takes the profile, and its units are those of the fit.
    let stack = format!("[media.nand]\nprofile = {:?}\nblocks_per_plane = 64\n\n[ftl]\n", path.display());
    let stack = Stack::parse("mine", &stack, &[]).unwrap();
    let units = c.parameters.iter().find(|p| p.name == Parameter::Units).unwrap().fitted;
    let (summary, _) = stack.summary().unwrap();
    assert_eq!(summary.media[0].units, units as u32);
    let loss = |part: &frit_calibrate::PartScores| part.scores.iter().map(|s| s.loss).collect::<Vec<_>>();
    let losses = loss(&c.held_out_part);
    assert!(losses[0] < 0.01 && losses[1] > 0.1 && losses[2] > 0.1, "{losses:?} {units}");
    // The stack of the fit is the model.
    let own = stack_text(&model, &c);
    assert!(own.contains(&hash) && own.ends_with(&model.stack_text(&c.settings)), "{own}");
    Stack::parse("drive", &own, &[]).unwrap().build(&frit_stack::Bytes::None).unwrap();
}
