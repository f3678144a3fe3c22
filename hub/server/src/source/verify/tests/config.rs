//! What can't be set up, and what nobody gets to see.

use super::*;

fn named(name: &str, settings: &SchemeSettings) -> Result<Scheme, String> {
    Scheme::named(name, settings).map_err(|wrong| wrong.to_string())
}

/// HUB-3. Trap: "Unknown verifier or missing secret falls back to \"no check\" → fails closed."
#[test]
fn hub_3_an_unknown_scheme_is_a_mistake() {
    for name in ["", "none", "GitHub", "github ", "hmac-sha1", "basic", "standard_webhooks"] {
        let wrong = named(name, &SchemeSettings::default()).unwrap_err();
        assert_eq!(wrong, "the scheme is one of bearer, github, hmac, slack, standard-webhooks, stripe");
    }
    for scheme in schemes() {
        let header = matches!(scheme, Scheme::Hmac(_)).then(|| "x-signature".to_owned());
        let again = named(scheme.name(), &SchemeSettings { header, ..SchemeSettings::default() }).unwrap();
        assert_eq!(again.name(), scheme.name());
    }
}

/// HUB-3. Trap: "Unknown verifier or missing secret falls back to \"no check\" → fails closed."
#[test]
fn hub_3_without_a_secret_there_is_no_verifier() {
    for scheme in schemes() {
        assert_eq!(Verifier::new(scheme.clone(), []).unwrap_err(), SchemeError::NoSecret, "{scheme:?}");
        assert_eq!(
            Verifier::new(scheme.clone(), ["".into()]).unwrap_err(),
            SchemeError::NoSecret,
            "{scheme:?}"
        );
        let both = [SECRET.into(), "".into()];
        assert_eq!(
            Verifier::new(scheme.clone(), both).unwrap_err(),
            SchemeError::NoSecret,
            "one of two is empty"
        );
        for edge in [" ", "\n", " c2VjcmV0", "c2VjcmV0\n"] {
            let wrong = Verifier::new(scheme.clone(), [edge.into()]).unwrap_err();
            assert!(matches!(wrong, SchemeError::Secret(_)), "{scheme:?}: {edge:?}");
        }
        let many = || vec![Secret::from(SECRET); 16].into_iter();
        assert!(Verifier::new(scheme.clone(), many()).is_ok());
        let wrong = Verifier::new(scheme, many().chain([SECRET.into()])).unwrap_err();
        assert_eq!(wrong, SchemeError::TooManySecrets);
    }
    let standard = |secret: &str| Verifier::new(Scheme::StandardWebhooks, [secret.into()]).unwrap_err();
    assert_eq!(standard("whsec_"), SchemeError::NoSecret, "a prefix is no secret");
    for secret in ["whsec_!", "whsec_abc", "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "plain text"] {
        assert!(standard(secret).to_string().contains("`whsec_` and base64"), "{secret}");
    }
    let bearer = Verifier::new(Scheme::Bearer, ["two words".into()]).unwrap_err();
    assert!(bearer.to_string().contains("visible ASCII"), "{bearer}");
}

/// HUB-3: a header for a scheme that has its own is a mistake, or somebody believes that it is checked.
#[test]
fn hub_3_settings_that_would_not_count_are_a_mistake() {
    let said = |value: &str| Some(value.to_owned());
    let hmac = |header: &str, prefix: &str, encoding: &str| {
        named(
            "hmac",
            &SchemeSettings { header: said(header), prefix: said(prefix), encoding: said(encoding) },
        )
    };
    assert!(hmac("x-signature", "", "hex").is_ok() && hmac("X-Signature", "v1 ", "base64").is_ok());
    assert!(hmac("", "", "hex").unwrap_err().contains("`header`"));
    assert!(hmac("x signature", "", "hex").unwrap_err().contains("`header`"));
    assert!(hmac("x-signature", "\u{e9}", "hex").unwrap_err().contains("`prefix`"));
    assert!(hmac("x-signature", " v1", "hex").unwrap_err().contains("`prefix`"), "it can't arrive");
    assert!(hmac("x-signature", "", "HEX").unwrap_err().contains("`encoding`"));
    assert!(named("hmac", &SchemeSettings::default()).unwrap_err().contains("`header`"));
    for settings in [
        SchemeSettings { header: said("x"), ..SchemeSettings::default() },
        SchemeSettings { prefix: said("x"), ..SchemeSettings::default() },
        SchemeSettings { encoding: said("hex"), ..SchemeSettings::default() },
    ] {
        assert!(named("github", &settings).unwrap_err().contains("a setting of the scheme hmac"));
    }
}

/// HUB-3. Trap: "Error text or stored metadata that carries credentials → allow-list of loggable headers; 20 planted
/// canaries are found nowhere." Neither the verifier nor a refusal shows a secret, a signature or a header's value.
#[test]
fn hub_3_nothing_that_is_shown_holds_a_secret() {
    for scheme in schemes() {
        assert!(!format!("{:?}", verifier(&scheme)).contains(SECRET));
        let canary = format!("{}canary", proof(&scheme, SECRET, STAMP, BODY));
        let mut headers = request(&scheme);
        headers.insert(proof_header(&scheme), HeaderValue::from_str(&canary).unwrap());
        let refused = check(&scheme, &headers).unwrap_err();
        let shown = format!("{refused} {refused:?} {}", refused.reason());
        assert!(!shown.contains("canary") && !shown.contains(SECRET), "{shown}");
    }
}
