import Foundation

@testable import URLLoading

/// A client's certificate with its key, and the root that vouches for it: made for these tests, and
/// good for nothing else.
enum CertificateFixtures {
    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBPTCB5AIBBzAKBggqhkjOPQQDAjAsMRYwFAYDVQQKDA1FeGFtcGxlIE7DpG1l
        MRIwEAYDVQQDDAlUZXN0IFJvb3QwIBcNMjYxMTIxMTYxNDU4WhgPMjEyNjEwMjgx
        NjE0NThaMCgxEDAOBgNVBAoMB0V4YW1wbGUxFDASBgNVBAMMC2NsaWVudCwgb25l
        MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZ5LPofjeTUb+yLSFGbmf2r+G1BaU
        /+JBlnvpblGhdxXTsoix/Qd0oeYS9pPFYo3q3sqQ46O63P8r5rNoCnmWlDAKBggq
        hkjOPQQDAgNIADBFAiEAjlTRndspgStg32Kst8kTXGKoqbqJCyzIEG2+EJxPwKsC
        IDbjZzJRveUeJks08bw6RTSduYZ188avYz7MOL/ojo4f
        -----END CERTIFICATE-----
        """

    static let root = """
        -----BEGIN CERTIFICATE-----
        MIIBrjCCAVWgAwIBAgIUEnM9rH7+JJ597VrUw34TGts+51owCgYIKoZIzj0EAwIw
        LDEWMBQGA1UECgwNRXhhbXBsZSBOw6RtZTESMBAGA1UEAwwJVGVzdCBSb290MCAX
        DTI2MTEyMTE2MTQ1OFoYDzIxMjYxMDI4MTYxNDU4WjAsMRYwFAYDVQQKDA1FeGFt
        cGxlIE7DpG1lMRIwEAYDVQQDDAlUZXN0IFJvb3QwWTATBgcqhkjOPQIBBggqhkjO
        PQMBBwNCAARZi5T5HbSQF2RfAFAgSADwyz90tp/hvB9AH5taFfs3eddRK7wYS25n
        ldUA8eHrw6n/NxjFiqu2gzP8ssE/Aqizo1MwUTAdBgNVHQ4EFgQUfRH1hmGHAy2A
        1MBN6Ig8EiKfu0IwHwYDVR0jBBgwFoAUfRH1hmGHAy2A1MBN6Ig8EiKfu0IwDwYD
        VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBhO3AJzIm82wj5ncWYyh0J
        IZmpVmjsxtPVcKoCKzGG6QIgQ/8MMb4EC5QR01KQlADDb3cN/sYq5ElttzzXcAC6
        SLE=
        -----END CERTIFICATE-----
        """

    static let key = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIC/NlEaPfIO4PmXu1QL5MYPlo0K1vJJfdEQWIDK8hpseoAoGCCqGSM49
        AwEHoUQDQgAEZ5LPofjeTUb+yLSFGbmf2r+G1BaU/+JBlnvpblGhdxXTsoix/Qd0
        oeYS9pPFYo3q3sqQ46O63P8r5rNoCnmWlA==
        -----END EC PRIVATE KEY-----
        """

    /// The same key, under the password `secret`.
    static let encryptedKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiU+ZHELaZriQICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEL6LHQrqM+mmxRYjE1t6YfwEgZDi
        aI5sOvRIm3YWqcpFHj/BkGbMIDXATddQ2UXqOtPTuKAluKVZx2qczT5RZXZoNm9Z
        EjgTc/+4slKYMmgDkmHaYePZA20xbQDE7QN+pvzKnAMKy0Jkj5gK3Ou777jujoGD
        g61a2HfyqVu66pkOE7y1y0CV/zEjDCbOPSWCdLmNjg/q7T5GAp+iLs7s9fVSEp8=
        -----END ENCRYPTED PRIVATE KEY-----
        """

    /// Another one.
    static let otherKey = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIOn2+HVykQ0UrUwOJ3DJUajOnNOyvwfNMVoB0HreCbMRoAoGCCqGSM49
        AwEHoUQDQgAEkCJEwFV6Fo1RMosU878gCxVjVwDBwrTo1w5jrwC4ycWJjyNdvbIe
        zp0BQeIcdNe63BLuofbcjVFi/d0OgOuHoQ==
        -----END EC PRIVATE KEY-----
        """

    /// All of it in one file, under the password `secret`.
    static var bundle: Data { Self.data(Self.bundleText) }

    /// The same without the root, encrypted as old tools did (RC2 with 40 bits).
    static var oldBundle: Data { Self.data(Self.oldBundleText) }

    static func identity() throws -> URLClientIdentity {
        try URLClientIdentity(pem: Data(Self.certificate.utf8), key: Data(Self.key.utf8))
    }

    /// The octets between the lines of a PEM.
    static func der(_ pem: String) -> Data {
        Self.data(pem.split(separator: "\n").filter { !$0.hasPrefix("-") }.joined())
    }

    private static func data(_ text: String) -> Data {
        Data(base64Encoded: text, options: .ignoreUnknownCharacters) ?? Data()
    }

    private static let bundleText = """
        MIIFrAIBAzCCBWIGCSqGSIb3DQEHAaCCBVMEggVPMIIFSzCCBAIGCSqGSIb3DQEHBqCCA/MwggPvAgEA
        MIID6AYJKoZIhvcNAQcBMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAi/MqUMKI1mUQICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEOL/yx4hdqQ051J9nvBf0cyAggOA/syqSCoaZOEcgLPV
        JI0jhnfA0qKI8wmCYzo0v18/Gs4wmQ6aos8KR0qySEUzX4g3rIujznXJfAdPo1rQPPQ3wxux3m0D0z8j
        nMuzSnYabCvq06PwdmH8qen/vTnaya+XPjDvAZFwiT7k4vkNV9wPRsK84mj0R4EMBx812IrQDa+6d9J9
        Yn3cD75A5xad6m5Qe6c3YbDnTthNejEkt2ylSiquADHBMwvq6x6JfBvEx9GRKXoyqEnorhfRsp5H+oAM
        uKu/0zl4UqVOyjKpRKTqoZuCMg4q5HiEJjLtfIzCB3FaHmXc6Nv+c0YZ7HXaT5orhRlLUQAGM6Sd15gn
        7mNeyUBEzXNQkXnz1ruP4dyuulk7mOp2idld/7NNUDmya5Dxp/OtZeUxfccsQlrZywvd3DHh/XDrOLHs
        cWbxwFMXxSKFe06an32/zjYxpK3+oc6GF8SHyCDsShcoNBwEfd/yWqxtbFX7SrdYdjhjO/PJ27oKTcfS
        RVpoaJjDmOVmrxVpL2imAOjLT5H+h0GWlP4xBw0VfcWMktorMHJV2KJls3RlwUGZphLNwLP+HdLALkDt
        yown/h9uipOxVWhq69K/kegYIKkZSWc0yFS2nzRzBoALmYBp7qU2jkDjofqmys66axZJl/HMeMY8/FRO
        dYKfsDIbrHwnXhV8ynJL9T8v2uEwoij+oP825NgkO5FXU/W7unvRBDxHzP3pqpiec4j9JSQqyUbd6WkG
        ZtgsHcGtH7oi36rwIWerXck6OEzdmD5BwJC4wkGl+m/z3Pe8vAnixKBXnwQ1Q6HYQ936cNKROVBzXL2y
        tsMZ6V9w2vF2OIy3pdmAHV0Ocb1uE/dRPhpjqeEnCpsbalRFoi/j2a7BEtwic3f3q+b2BE/f2gRRTQ+t
        lQCWRfWKlEHljOPdW0/EhjreoKG9QKZH9lLfLPL4yBDrQLjbF9N1OBkga5ArKeA4WkX8sHd1HTTVXF/Y
        EOJs2xzyI9fmNHqw0xotFBJ2XMlxKqh4JoNUKTmjhnkpL5KNbZ30IrhiT2eklQeQJL1j5p6zpIJIO/Np
        MnZ13M5/tZuEdNzwuigFzYuKb610AxHMpPgFQzY6ckiZnOMSM9Z7oV+QzCGWP//brmthm8dkaXjlIZoH
        4rc/C4gwGdlopEWAkxVwGCSz9XTMRVNBFYVAxpONBzVYe4+aBqJRAf4EUQQwggFBBgkqhkiG9w0BBwGg
        ggEyBIIBLjCCASowggEmBgsqhkiG9w0BDAoBAqCB7zCB7DBXBgkqhkiG9w0BBQ0wSjApBgkqhkiG9w0B
        BQwwHAQIo13CrQP/MFwCAggAMAwGCCqGSIb3DQIJBQAwHQYJYIZIAWUDBAEqBBBwNn0E6FuzBoblQdRi
        /N5iBIGQLef7JlHJF1QaxbtpPTF6lKC2pvtTwyiHxztMsJ9o0dNzpW1SdNul8uRu11Tv00pmFkAapFUt
        aPaMZGryGMs+wQJkKwcxaEEibeVJHp4JufR3JqLR9L/jpBj7hH39PZY9ep0b0yksnye8Z1LR7+wgPKSK
        LqtRonKOHzuCHTsJVT0z7hShacaXgAFBA/LFIXNyMSUwIwYJKoZIhvcNAQkVMRYEFFP6isuTcR1nL17e
        Ek4YofyTvo6TMEEwMTANBglghkgBZQMEAgEFAAQgbmiuJvOC/2mrWRzZupv8mIe41SAJZmJr+v9HpyqJ
        jgIECBIsWGvXKXW0AgIIAA==
        """

    private static let oldBundleText = """
        MIIDQgIBAzCCAwgGCSqGSIb3DQEHAaCCAvkEggL1MIIC8TCCAecGCSqGSIb3DQEHBqCCAdgwggHUAgEA
        MIIBzQYJKoZIhvcNAQcBMBwGCiqGSIb3DQEMAQYwDgQIGe9A2rQguK8CAggAgIIBoLYxSqXF7KS5G1vB
        7+Ypowcd+m+1GJJ1vjkp34+Hp1SN6D3NBDg7ht9GvmDMGb0FGHZNcvHVRcJboacbX9C5FhI7iCvP2LA2
        1eX9DPnCA6J8brZ/+25MTKWak4Yp1HVfZ4v6vJ+3gTTZjxgM/d4QdWLBRja5cG9PSKrb9ODKxW0hTfCD
        rZNKRsZQ93SdG7uYudKKo8eyRtuM2sHasnGC+i18GSuZ1IcSrzJgSYZ875bRFyHgRbyb2hxSsxzGgGY9
        7XlKQFGxMRgG8uIeevn+yr3Rq8k5Ri203R75gE/heYHNywUCChPgW5VbSgLy62tDGAFXbg1KPADCw0nJ
        lVez2VpVFy3s51iOo6KR09hrnkwWjQHDxYxbvLf4X7mUBxVWREl4SC7qL8ajuLqXwo0kw/gLrQS6nWrb
        TX1EdYQRHfRB6B9CewXwGvookO9SP8YgAP7MitPeQnKP45q4ikz7TqG/OzKhpvkFOGZJJu4ciJ3RuO6Y
        EH/8q/T+NvnWuUAS0jjIfSv07b0PYqQwg5KPTW4oQTm9pBStRNAYBcwm+OR4MIIBAgYJKoZIhvcNAQcB
        oIH0BIHxMIHuMIHrBgsqhkiG9w0BDAoBAqCBtDCBsTAcBgoqhkiG9w0BDAEGMA4ECF8iqEn3SvX4AgII
        AASBkIOLuXYSCwkYSFDV+wre8wbrPktndxTdOMhllQ3jU5FW57iLLECMP91puqDsKJiu/iaWkPhdrcm5
        SDYiIfGBSwfHE7EsIfuk+8Q70UtFLrHSmyXAYG/0uLbpOHQiK5SQOraDRdhiNiCMvUL/+1gXDAouDzpP
        fpFYI5pkCdbU1OPO3xlF3AKSU0AxdYgDW5pxPDElMCMGCSqGSIb3DQEJFTEWBBRT+orLk3EdZy9e3hJO
        GKH8k76OkzAxMCEwCQYFKw4DAhoFAAQUaPb1//iHEpA8av3c+73fCXtWxpcECCPQWaD0uOCNAgIIAA==
        """
}
