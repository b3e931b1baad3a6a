import Foundation

// The form of resume data. Nothing in it is believed: it may come from anywhere.

extension ResumeData {
    private static let form = SealedForm(mark: "URLLoading resume", version: 1)
    /// Longer ones are refused: a request's fields are far from it.
    private static let limit = 1 << 20

    func encoded() -> Data {
        var writer = SealedForm.Writer(Self.form)
        writer.append(self.url.absoluteString)
        writer.append(self.fields)
        writer.append(self.validators.entityTag)
        writer.append(self.validators.lastModified)
        writer.append(UInt64(bitPattern: self.total))
        writer.append(self.part.path)
        writer.append(UInt64(bitPattern: self.part.length))
        writer.append(self.part.checksum)
        writer.append(self.settings)
        return writer.sealed()
    }

    /// nil for anything but what `encoded` makes: foreign, damaged, cut off or forged data.
    init?(decoding data: Data) {
        guard data.count <= Self.limit, var reader = Self.form.open(data),
            let resume = Self.read(&reader), reader.isAtEnd, resume.isSound
        else { return nil }
        self = resume
    }

    private static func read(_ reader: inout SealedForm.Reader) -> ResumeData? {
        guard let address = reader.text(), let url = URL(string: address),
            let fields = reader.fields(), let entityTag = reader.optionalText(),
            let lastModified = reader.optionalText(),
            let total = reader.number(), let path = reader.text(), let length = reader.number(),
            let checksum = reader.number(), let settings = reader.settings()
        else { return nil }
        let part = DownloadPart(
            path: path, length: Int64(bitPattern: length), checksum: checksum)
        return ResumeData(
            url: url, fields: fields,
            validators: Validators(entityTag: entityTag, lastModified: lastModified),
            total: Int64(bitPattern: total), part: part, settings: settings)
    }

    /// Whether a download could have left it.
    private var isSound: Bool {
        guard let scheme = self.url.scheme?.lowercased(), ["http", "https"].contains(scheme),
            self.url.host?.isEmpty == false,
            self.part.length > 0, self.total == -1 || self.total >= self.part.length,
            DownloadFile.isPlausible(self.part.path)
        else { return false }
        let validators = [self.validators.entityTag, self.validators.lastModified].compactMap { $0 }
        guard !validators.isEmpty, validators.allSatisfy(Field.isValue) else { return false }
        return self.fields.allSatisfy(\.isSound)
    }
}
