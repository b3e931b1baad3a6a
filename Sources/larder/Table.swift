/// Rows in aligned columns, written as they come.
///
/// The first rows are kept until the widths are known; those after them keep to these widths. So
/// a listing of any length needs little memory.
struct Table {
    struct Column {
        var title: String
        var isNumber = false
        /// Whether it is this column that gives way when the terminal is narrow.
        var isElastic = false
    }

    private let columns: [Column]
    /// nil: nothing is cut.
    private let width: Int?
    private var kept: [[String]] = []
    private var widths: [Int]?

    private static let rowsBefore = 512
    private static let narrowest = 16

    /// - Parameter width: of the terminal; nil where there is none.
    init(_ columns: [Column], width: Int?) {
        self.columns = columns
        self.width = width
    }

    /// Takes a row; answers the lines that can be written now.
    mutating func add(_ cells: [String]) -> [String] {
        if let widths = self.widths { return [self.line(cells, widths)] }
        self.kept.append(cells)
        return self.kept.count < Self.rowsBefore ? [] : self.settle()
    }

    /// The lines that are left.
    mutating func finish() -> [String] { self.settle() }

    /// Has the widths follow from the rows so far, and answers their lines; nothing where there are
    /// none, or where the widths are known.
    mutating func settle() -> [String] {
        guard self.widths == nil, !self.kept.isEmpty else { return [] }
        var widths = self.columns.map(\.title.count)
        for row in self.kept {
            for (index, cell) in row.enumerated() { widths[index] = max(widths[index], cell.count) }
        }
        if let elastic = self.columns.firstIndex(where: \.isElastic), let width = self.width {
            let others = widths.reduce(0, +) - widths[elastic] + 2 * (widths.count - 1)
            widths[elastic] = min(widths[elastic], max(Self.narrowest, width - others))
        }
        self.widths = widths
        let rows = [self.columns.map(\.title)] + self.kept
        self.kept = []
        return rows.map { self.line($0, widths) }
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var line = ""
        for (index, cell) in cells.enumerated() {
            let isCut = self.columns[index].isElastic && self.width != nil
            let text = isCut ? Self.cut(cell, to: widths[index]) : cell
            let room = String(repeating: " ", count: max(0, widths[index] - text.count))
            if index > 0 { line += "  " }
            line += self.columns[index].isNumber ? room + text : text + room
        }
        while line.last == " " { line.removeLast() }
        return line
    }

    /// Takes the middle out: the beginning and the end of a URL tell most.
    static func cut(_ text: String, to width: Int) -> String {
        guard text.count > width, width > 1 else { return text }
        let head = (width - 1) / 2
        return text.prefix(head) + "…" + text.suffix(width - 1 - head)
    }
}
